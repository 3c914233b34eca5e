package main

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// walPosition returns how many bytes of WAL the cluster has written so far.
func walPosition(ctx context.Context, conn *pgx.Conn) (n int64, err error) {
	err = conn.QueryRow(ctx, "select (pg_current_wal_lsn() - '0/0')::int8").Scan(&n)
	return n, err
}
