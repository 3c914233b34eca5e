package consumer

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/internal/store"
	"github.com/tidemarkhq/tidemark/internal/worker"
)

// Row is a row of a table that is a source.
type Row struct {
	ID   string          // as text
	Time time.Time       // its timestamp; zero where it has none
	Data json.RawMessage // the whole row, an object by column
}

// Scan decodes the row into v, a pointer to a struct with json tags or to a map.
func (r Row) Scan(v any) error { return json.Unmarshal(r.Data, v) }

// A RowsHandler handles a page of rows, in the order of the source. What it writes in tx
// commits together with the cursor, or not at all.
//
// An error takes back what this call wrote, and the page is tried in halves, down to the
// row that fails alone. That row is tried again after a while (see RetryAfter), as the
// worker's retry_policy says; then, or at once with Permanent, it is kept as a dead
// letter. The other rows go on meanwhile.
//
// ctx ends with the worker's page_timeout, or when the program may not handle rows any more.
type RowsHandler func(ctx context.Context, tx pgx.Tx, rows []Row) error

// HandleRows lets h handle the rows of a source (tidemark source add). The worker is called like the one of the events,
// with ".rows" behind.
//
// HandleRows panics if it is called twice for a source, with a nil handler, or while the client runs.
func (c *Client) HandleRows(source string, h RowsHandler) {
	twice := func() bool {
		return slices.ContainsFunc(c.rows, func(r rowsRegistration) bool { return r.source == source })
	}
	c.register("HandleRows("+source+")", h == nil, twice, func() { c.rows = append(c.rows, rowsRegistration{source, h}) })
}

type rowsRegistration struct {
	source  string
	handler RowsHandler
}

// pagings are those of the workers of rows, by the names of their cursors.
type pagings map[string]*worker.Paging

// hear takes what operators have changed.
func (p pagings) hear(all store.Registry) {
	for _, c := range all.Tables {
		if paging := p[store.CursorName(c.Worker, c.Source, c.Shard)]; paging != nil {
			paging.Set(c.Paging)
		}
	}
}

// tables registers the handlers of rows and returns a worker for each of their shards, whose pagings it adds to p.
func (c *Client) tables(ctx context.Context, o worker.Options, p pagings) ([]*worker.Worker, error) {
	o.Wake = nil // writers of a table wake no worker
	name := c.config.Worker + ".rows"
	var tables []*worker.Worker
	for _, r := range c.rows {
		shards, err := store.RegisterRows(ctx, c.pool, name, r.source)
		if err != nil {
			return nil, err
		}
		for _, s := range shards {
			paging := worker.NewPaging(s.Paging)
			p[store.CursorName(name, r.source, s.Shard)] = paging
			tables = append(tables, worker.New(c.pool, c.options(name, o), worker.Table{
				Source: r.source, Shard: s.Shard, Paging: paging, Handle: r.handle,
			}))
		}
	}
	return tables, nil
}

// handle hands a page over as a whole; where that fails, its halves, earlier ones first.
func (r rowsRegistration) handle(ctx context.Context, tx pgx.Tx, page []store.Row) (failed []store.FailedRow, splits int, err error) {
	rows := make([]Row, len(page))
	for i, p := range page {
		rows[i] = Row{ID: p.ID, Data: p.Row}
		if p.Time != nil {
			rows[i].Time = *p.Time
		}
	}
	deferred, err := store.Deferred(ctx, tx)
	if err != nil {
		return nil, 0, err
	}
	stack := [][2]int{{0, len(rows)}}
	for len(stack) > 0 {
		part := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		failure, err := r.attempt(ctx, tx, deferred, rows[part[0]:part[1]])
		switch {
		case err != nil:
			return nil, splits, err
		case failure == nil:
			continue
		}
		splits++
		if part[1]-part[0] == 1 {
			failed = append(failed, failedRow(page[part[0]], failure))
			continue
		}
		middle := (part[0] + part[1]) / 2
		stack = append(stack, [2]int{middle, part[1]}, [2]int{part[0], middle})
	}
	return failed, splits, nil
}

// attempt hands a part of the page over. err: the transaction is lost.
func (r rowsRegistration) attempt(ctx context.Context, tx pgx.Tx, deferred string, rows []Row) (failure, err error) {
	failure, err = attempt(ctx, tx, deferred, func(savepoint pgx.Tx) error {
		return guarded(savepoint, func(tx pgx.Tx) error { return r.handler(ctx, tx, rows) })
	})
	if unfit := (unfitError{}); ctx.Err() == nil && errors.As(failure, &unfit) {
		return failure, worker.UnfitError{Cause: unfit.error}
	}
	if failure != nil && (ctx.Err() != nil || tx.Conn().IsClosed()) {
		err = errors.Join(failure, ctx.Err())
	}
	return failure, err
}

func failedRow(row store.Row, failure error) store.FailedRow {
	permanent, after := wishes(failure)
	return store.FailedRow{Row: row, Message: failure.Error(), Permanent: permanent, Delay: after}
}
