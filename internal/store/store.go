// Package store sends all statements to Tidemark's schema, beside Emit of the root package and the migrations. A [Cursor] and
// a [Table] are a worker's side: claim, read, settle, release. A [DB] is the side of the command, the daemon and the admin
// server: a method for each function and view. What the database refuses a DB comes back as a *tidemark.Error.
//
// The fields of a DB's structs are columns of the schema, whose comments say what they mean; their JSON has the same names.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark"
)

// Querier is a *pgx.Conn, a *pgxpool.Pool or a pgx.Tx.
type Querier interface {
	tidemark.Querier
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
}

// DB calls Tidemark's functions and reads its views through a Querier.
type DB struct{ querier Querier }

// New returns a DB whose statements run on q.
func New(q Querier) *DB { return &DB{querier: q} }

// finiteRows survive stored times that Go cannot write: infinity, years after 9999.
type finiteRows struct{ pgx.Rows }

// Scan implements pgx.Rows.
func (r finiteRows) Scan(targets ...any) error { return r.Rows.Scan(finiteTargets(targets)...) }

// list collects rows into structs, by the names in their db tags.
func list[T any](ctx context.Context, db *DB, sql string, args ...any) ([]T, error) {
	rows, _ := db.querier.Query(ctx, sql, args...) // its error is in rows too
	all, err := pgx.CollectRows(finiteRows{rows}, pgx.RowToStructByName[T])
	return all, tidemark.AsError(err)
}

// one is list for a statement that gives one row; none is pgx.ErrNoRows.
func one[T any](ctx context.Context, db *DB, sql string, args ...any) (T, error) {
	rows, _ := db.querier.Query(ctx, sql, args...)
	got, err := pgx.CollectExactlyOneRow(finiteRows{rows}, pgx.RowToStructByName[T])
	return got, tidemark.AsError(err)
}

// value is one for a single column.
func value[T any](ctx context.Context, db *DB, sql string, args ...any) (v T, err error) {
	err = db.querier.QueryRow(ctx, sql, args...).Scan(finiteTargets([]any{&v})...)
	return v, tidemark.AsError(err)
}

// known turns "no row" into what the functions of the schema raise for it.
func known[T any](row T, err error, what, hint string) (T, error) {
	if errors.Is(err, pgx.ErrNoRows) {
		return row, &tidemark.Error{Code: "TM004", Message: "there is no " + what, Hint: hint}
	}
	return row, err
}

// Clock is the time by the database's clock.
func (db *DB) Clock(ctx context.Context) (time.Time, error) {
	return value[time.Time](ctx, db, `select clock_timestamp()`)
}

// InTurn reads until one reading fails.
func InTurn(readings ...func() error) error {
	for _, read := range readings {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}
