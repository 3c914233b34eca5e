package cursor

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Registered is a route of a Go program.
type Registered struct {
	Code    string
	Pattern string
	Enabled bool
	DryRun  bool
}

// Register calls tidemark.handlers_register.
func Register(ctx context.Context, db Querier, worker string, patterns []string) ([]Registered, error) {
	rows, _ := db.Query(ctx, `select route_code, pattern, enabled, dry_run from tidemark.handlers_register($1, $2)`, worker, patterns)
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Registered])
}

// KeyOf is an ordering key on a route.
type KeyOf struct {
	Route int32
	Key   string
}

// Behind returns those of the keys on the routes with events pending, as the transaction
// sees it. It has to be asked under the lease: then nobody changes it.
func (c *Cursor) Behind(ctx context.Context, tx Querier, routes []int32, keys []string) (map[KeyOf]bool, error) {
	rows, _ := tx.Query(ctx, `select distinct p.route_id, p.key from tidemark.pending p
		where p.route_id = any ($1) and p.key = any ($2) and p.dead_letter_id is null`, routes, keys)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[KeyOf])
	behind := make(map[KeyOf]bool, len(found))
	for _, k := range found {
		behind[k] = true
	}
	return behind, err
}

// Closed calls tidemark.closed_switch: what forbids by now to deliver on the routes.
// Empty: nothing.
func (c *Cursor) Closed(ctx context.Context, tx Querier, routes []int32) (string, error) {
	var closed *string
	err := tx.QueryRow(ctx, `select tidemark.closed_switch($1, $2)`, c.worker, routes).Scan(&closed)
	if closed == nil {
		return "", err
	}
	return *closed, err
}
