package store

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

// Register calls tidemark.handlers_register. starts is where a new worker begins.
func Register(ctx context.Context, db Querier, worker string, patterns []string, starts string) ([]Registered, error) {
	rows, _ := db.Query(ctx, `select route_code, pattern, enabled, dry_run from tidemark.handlers_register($1, $2, $3)`, worker, patterns, starts)
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Registered])
}

// KeyOf is an ordering key on a route.
type KeyOf struct {
	Route int32
	Key   string
}

// Behind returns which of the keys have events pending on their route, as the transaction sees it. Ask under the lease: no
// other session changes them then.
func (c *Cursor) Behind(ctx context.Context, tx Querier, routes []int32, keys []string) (map[KeyOf]bool, error) {
	rows, _ := tx.Query(ctx, `select distinct p.route_id, p.key from tidemark.pending p
		where p.route_id = any ($1) and p.key = any ($2) and not p.replay`, routes, keys)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[KeyOf])
	behind := make(map[KeyOf]bool, len(found))
	for _, k := range found {
		behind[k] = true
	}
	return behind, err
}

// Closed calls tidemark.closed_switch: what forbids by now to deliver on the routes, of other
// domains than those that were shut. Empty: nothing.
func (c *Cursor) Closed(ctx context.Context, tx Querier, routes []int32, shut []string) (string, error) {
	var closed *string
	err := tx.QueryRow(ctx, `select tidemark.closed_switch($1, $2, coalesce($3::text[], '{}'))`, c.worker, routes, shut).Scan(&closed)
	if closed == nil {
		return "", err
	}
	return *closed, err
}

// Shard is one of the cursors of a worker for a source.
type Shard struct {
	Shard       int
	PageSize    int
	PageTimeout float64 // seconds
}

// RegisterRows calls tidemark.rows_register and tidemark.worker_source_add, and returns the
// shards.
func RegisterRows(ctx context.Context, db Querier, worker, source string) ([]Shard, error) {
	if _, err := db.Exec(ctx, `select tidemark.rows_register($1)`, worker); err != nil {
		return nil, err
	}
	if _, err := db.Exec(ctx, `select tidemark.worker_source_add($1, $2, 'registered by its program')`, worker, source); err != nil {
		return nil, err
	}
	rows, _ := db.Query(ctx, `select c.shard, w.page_size, extract(epoch from w.page_timeout)::float8
		from tidemark.worker_cursor c join tidemark.worker w on w.worker = c.worker where c.worker = $1 and c.source = $2 order by 1`, worker, source)
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Shard])
}

// CheckDeferred checks the constraints that wait for the commit: there they would fail for the whole page, and nothing would
// tell for which event or row.
func CheckDeferred(ctx context.Context, tx Querier) error {
	var deferred *string
	if err := tx.QueryRow(ctx, `select tidemark.deferred_constraints()`).Scan(&deferred); err != nil || deferred == nil {
		return err
	}
	if _, err := tx.Exec(ctx, "set constraints "+*deferred+" immediate"); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "set constraints "+*deferred+" deferred")
	return err
}
