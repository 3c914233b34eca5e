package store

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
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

// EventOf is an event on a route.
type EventOf struct {
	Route int32
	Seq   int64
}

// Handled returns what handlers of the worker have handled and is not settled. Ask under the lease.
func (c *Cursor) Handled(ctx context.Context, tx Querier) (map[EventOf]bool, error) {
	rows, _ := tx.Query(ctx, `select h.route_id, h.seq from tidemark.handled h join tidemark.outbound_route r on r.id = h.route_id
		where r.worker = $1`, c.worker)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[EventOf])
	handled := make(map[EventOf]bool, len(found))
	for _, e := range found {
		handled[e] = true
	}
	return handled, err
}

// HandledAdd calls tidemark.handled_add in the transaction of a handler, and returns the constraints for CheckDeferred. added is
// false: the event was handled before.
func HandledAdd(ctx context.Context, tx Querier, worker string, e EventOf) (added bool, deferred string, err error) {
	err = tx.QueryRow(ctx, `select tidemark.handled_add($1, $2, $3), coalesce(tidemark.deferred_constraints(), '')`,
		worker, e.Route, e.Seq).Scan(&added, &deferred)
	return added, deferred, err
}

// LeaseHold calls tidemark.lease_hold in the transaction of a handler, before its commit. gate is what forbids by now to deliver
// events of the domain on the route: the caller rolls back then.
func LeaseHold(ctx context.Context, tx Querier, worker string, epoch int64, route int32, domain string) (gate string, err error) {
	err = tx.QueryRow(ctx, `select tidemark.lease_hold($1, $2)::text,
		coalesce(tidemark.closed_switch($1, array[$3::integer], array(select unnest(tidemark.closed_domains()) except select $4)), '')`,
		worker, epoch, route, domain).Scan(nil, &gate)
	return gate, err
}

// handlerTx begins a transaction for handlers, with the savepoint that HandlersAnew goes back to.
var handlerTx = pgx.TxOptions{BeginQuery: "begin isolation level read committed; savepoint tidemark_handlers"}

// InHandlerTx calls handle in a transaction for handlers, which begins within patience, and which SettleHandled commits.
func InHandlerTx(ctx context.Context, db Pool, patience time.Duration, handle func(tx pgx.Tx) error) error {
	beginning, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := db.Acquire(beginning)
	if err != nil {
		return err
	}
	defer conn.Release()
	tx, err := conn.BeginTx(beginning, handlerTx)
	if err != nil {
		return err
	}
	if err = handle(tx); err != nil && conn.Conn().PgConn().TxStatus() != 'I' {
		_ = tx.Rollback(ctx) // if it fails, the session is closed, which rolls back too
	}
	return err
}

// HandlersAnew takes back all that happened in a transaction of InHandlerTx.
func HandlersAnew(ctx context.Context, tx Querier) error {
	_, err := tx.Exec(ctx, "rollback to savepoint tidemark_handlers")
	return err
}

// Before is what handlers have to know before they act on events.
type Before struct {
	Behind   map[KeyOf]bool // keys that have events pending on their route
	Deferred string         // the constraints for CheckDeferred
	Calm     bool           // no event is pending for the worker, replays aside, and no constraint is deferred
}

// Before asks for that, of these keys, as the transaction sees it. Ask under the lease: no other session changes what is pending
// then.
func (c *Cursor) Before(ctx context.Context, tx Querier, routes []int32, keys []string) (b Before, err error) {
	b.Behind = map[KeyOf]bool{}
	batch := &pgx.Batch{}
	batch.Queue(deferredConstraints).QueryRow(func(row pgx.Row) error { return row.Scan(&b.Deferred) })
	// In the order of an index: statistics may say that all that waits is the worker's, where nothing is.
	batch.Queue(`select coalesce((select false from tidemark.pending p
		where p.worker_id = (select w.id from tidemark.worker w where w.worker = $1) and not p.replay
		order by p.route_id, p.seq limit 1), true)`, c.worker).QueryRow(func(row pgx.Row) error { return row.Scan(&b.Calm) })
	if len(keys) > 0 {
		// However many events wait, as behind a paused route, one look for each key: only its index has this order.
		batch.Queue(`select distinct k.route_id, k.key from tidemark.worker w
			cross join unnest($1::integer[], $2::text[]) k (route_id, key)
			cross join lateral (
				select from tidemark.pending p
				where p.worker_id = w.id and p.route_id = k.route_id and p.key between k.key and k.key and not p.replay
				order by p.key, p.seq limit 1) p
			where w.worker = $3`, routes, keys, c.worker).Query(func(rows pgx.Rows) error {
			found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[KeyOf])
			for _, k := range found {
				b.Behind[k] = true
			}
			return err
		})
	}
	err = tx.SendBatch(ctx, batch).Close()
	b.Calm = b.Calm && b.Deferred == ""
	return b, err
}

// SettleHandled settles the page in the transaction of handlers, asks for the gates once more, after all that can wait, and commits
// that. gate is what forbids by now to deliver on the routes, of other domains than those that were shut: nothing is committed
// then, as after an error.
func (c *Cursor) SettleHandled(ctx context.Context, tx pgx.Tx, page *Page, routes []int32, results []Result) (gate string, err error) {
	if page.Inside > 0 { // the settle delivers too, in a bounded time
		if err := c.Settle(ctx, tx, page, results); err != nil {
			return "", err
		}
		err := tx.QueryRow(ctx, `select coalesce(tidemark.closed_switch($1, $2, coalesce($3::text[], '{}')), '')`,
			c.worker, routes, page.Shut).Scan(&gate)
		if err == nil && gate == "" {
			err = tx.Commit(ctx)
		}
		return gate, err
	}
	batch := &pgx.Batch{}
	batch.Queue(settleHandled, append(c.settleArguments(page, results), routes)...)
	batch.Queue("commit")
	err = tx.SendBatch(ctx, batch).Close()
	var refused *pgconn.PgError
	switch {
	case !errors.As(err, &refused):
		return "", err
	case refused.Code == "TM009":
		return refused.Message, nil
	case refused.Code == "TM012":
		return "", cmp.Or(settleRefusal(refused.Message), err)
	}
	return "", err
}

// Shard is one of the cursors of a worker for a source.
type Shard struct {
	Shard int
	Paging
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

const deferredConstraints = `select coalesce(tidemark.deferred_constraints(), '')`

// Deferred returns the constraints that wait for the commit, for CheckDeferred.
func Deferred(ctx context.Context, tx Querier) (constraints string, err error) {
	err = tx.QueryRow(ctx, deferredConstraints).Scan(&constraints)
	return constraints, err
}

// CheckDeferred checks the constraints that wait for the commit: there they would fail for the whole page, and nothing would
// tell for which event or row.
func CheckDeferred(ctx context.Context, tx Querier, constraints string) error {
	if constraints == "" {
		return nil
	}
	if _, err := tx.Exec(ctx, "set constraints "+constraints+" immediate"); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "set constraints "+constraints+" deferred")
	return err
}
