package consumer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark"
	"github.com/tidemarkhq/tidemark/consumer"
	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// births is an application's table, which is a source, and what a handler makes of it.
const births = `
create table births (id bigint generated always as identity primary key, born_at timestamptz, name text);
create index on births (born_at, id);
create table effect (n text);
select tidemark.source_set('births', '{"table": "public.births", "id_column": "id", "timestamp_column": "born_at", "safety": "declared", "sweep_window": "1 hour", "margin": "1 microsecond"}');
select tidemark.rows_register('billing.rows');
select tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.billing.rows.enabled', true);`

// startRows runs a program with a handler for the rows of births; change changes its worker.
func startRows(t *testing.T, change string, handler consumer.RowsHandler) program {
	t.Helper()
	p := preparedRows(t, change)
	p.stop = p.runRows(handler)
	return p
}

// preparedRows is a program that does not run yet, with its worker's gate open.
func preparedRows(t *testing.T, change string) program {
	t.Helper()
	p := program{t: t, db: tidemarktest.NewDB(t)}
	p.exec(births)
	p.exec(`select tidemark.worker_set('billing.rows', '{"retry_policy": {"base_seconds": 0.01, "max_attempts": 3}}'::jsonb || $1::jsonb)`, "{"+change+"}")
	return p
}

func (p program) runRows(handler consumer.RowsHandler) (stop func()) {
	p.t.Helper()
	return p.runClient(func(c *consumer.Client) { c.HandleRows("births", handler) })
}

func (p program) born(names ...string) {
	p.t.Helper()
	for _, name := range names {
		p.exec(`insert into births (born_at, name) values (now() - interval '1 ms', $1)`, name)
	}
}

// noteRows writes the names down, all in one statement.
func noteRows(ctx context.Context, tx pgx.Tx, rows []consumer.Row) error {
	for _, r := range rows {
		var b struct{ Name string }
		if err := r.Scan(&b); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `insert into effect values ($1)`, b.Name); err != nil {
			return err
		}
	}
	return nil
}

func has(rows []consumer.Row, name string) bool {
	for _, r := range rows {
		var b struct{ Name string }
		if json.Unmarshal(r.Data, &b) == nil && b.Name == name {
			return true
		}
	}
	return false
}

const (
	waiting = `select concat_ws(' ', snapshot ->> 'name', error_count, last_error) from tidemark.pending_row order by item_id`
	dead    = `select concat_ws(' ', event_snapshot ->> 'name', attempts, error_code, error_detail) from tidemark.dead_letter order by item_id`
)

func TestHandleRows(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []consumer.Row
	p := startRows(t, `"page_size": 2`, func(ctx context.Context, tx pgx.Tx, rows []consumer.Row) error {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, rows...)
		return noteRows(ctx, tx, rows)
	})
	p.exec(`insert into births (born_at, name) select '2026-01-02 03:04:05.678901+00', n::text from generate_series(1, 5) n`)
	p.eventually(effects, "1 2 3 4 5")
	p.stop()
	p.eventually(`select last_status from tidemark.heartbeat where executor_id = 'billing.rows/births/0'`, "released")
	mu.Lock()
	defer mu.Unlock()
	if r := got[0]; r.ID != "1" || !r.Time.Equal(time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)) || string(r.Data) == "" {
		t.Errorf("%+v", r)
	}
}

// Whatever the timestamp: rows that have none that Go knows are rows all the same.
func TestHandleRowsOfAnyTime(t *testing.T) {
	t.Parallel()
	p := startRows(t, "", noteRows)
	p.exec(`alter database ` + p.db.Name + ` set timezone = 'Europe/Berlin'`)
	// In one statement: the source declares that rows do not come behind those that were read.
	p.exec(`insert into births (born_at, name) values (null, '0'), ('infinity', '1'), ('-infinity', '2'), ('0044-03-15 BC', '3'), ('1850-01-01 00:00+00', '4'),
		('2026-01-01', '5'), ('0001-01-01 BC', '6'), ('4713-01-01 BC', '7')`)
	p.stop()
	p.stop = p.runRows(noteRows)
	p.eventually(`select count(*) || ' ' || count(distinct n) from effect`, "8 8")
	p.eventually(waiting)
}

// What a handler wrote for the rows that failed is gone; what it wrote for the others is not.
func TestRowsHandlerFails(t *testing.T) {
	t.Parallel()
	var panics, swallows atomic.Int32
	p := startRows(t, "", func(ctx context.Context, tx pgx.Tx, rows []consumer.Row) error {
		if err := noteRows(ctx, tx, rows); err != nil {
			return err
		}
		switch {
		case has(rows, "permanent"):
			return consumer.Permanent(errors.New("no such child"))
		case has(rows, "later"):
			return consumer.RetryAfter(errors.New("not now"), time.Hour)
		case has(rows, "panic"):
			panics.Add(1)
			panic("in the handler")
		case has(rows, "swallow"): // an error of the database that the handler does not tell
			swallows.Add(1)
			_, _ = tx.Exec(ctx, `select 1 / 0`)
			return nil
		case has(rows, "close"):
			_ = tx.Rollback(ctx)
			return nil
		case has(rows, "sql"):
			_, err := tx.Exec(ctx, `insert into births (id) values (1)`)
			return err
		}
		return nil
	})
	p.born("a", "permanent", "b", "later", "c", "panic", "d", "swallow", "e", "sql", "f", "close", "g")
	p.eventually(effects, "a b c d e f g")
	p.eventually(`select event_snapshot ->> 'name' from tidemark.dead_letter order by 1`, "close", "panic", "permanent", "sql", "swallow")
	p.eventually(waiting, "later 1 handler: not now")
	p.eventually(`select concat_ws(' ', attempts, error_code, error_detail) from tidemark.dead_letter where item_id = '2'`, "1 handler no such child")
	p.eventually(`select concat_ws(' ', attempts, error_code, regexp_replace(error_detail, 'go:\d+', 'go:N')) from tidemark.dead_letter where item_id = '6'`, "3 handler panic: in the handler (consumer_test.TestRowsHandlerFails.func1, rows_test.go:N)")
	p.eventually(`select (next_attempt_at > now() + interval '50 minutes')::text from tidemark.pending_row`, "true")
	p.eventually(`select kind || ' ' || subject from tidemark.finding where closed_at is null`, "cursor_dlq billing.rows/births/0")
	p.born("h")
	p.eventually(effects, "a b c d e f g h")
}

// A handler that ends the transaction itself has failed, and its effects are taken back: not half of them.
func TestRowsHandlerEndsTheTransaction(t *testing.T) {
	t.Parallel()
	p := startRows(t, "", func(ctx context.Context, tx pgx.Tx, rows []consumer.Row) error {
		if err := noteRows(ctx, tx, rows); err != nil {
			return err
		}
		return tx.Commit(ctx)
	})
	p.born("a", "b", "c")
	p.eventually(`select event_snapshot ->> 'name' from tidemark.dead_letter where error_detail like '%committed or rolled back%' order by 1`, "a", "b", "c")
	p.eventually(effects, "")
}

// A row whose effect is refused only by the commit: that row has failed, and no other.
func TestRowsHandlerDefers(t *testing.T) {
	t.Parallel()
	p := startRows(t, "", noteRows)
	p.exec(`create table parent (n text primary key); insert into parent values ('a'), ('b'); alter table effect add foreign key (n) references parent deferrable initially deferred`)
	p.born("a", "x", "b")
	p.eventually(effects, "a b")
	p.eventually(`select event_snapshot ->> 'name' from tidemark.dead_letter`, "x")
}

// A row that takes too long has failed, by itself; the page that it was in is taken back.
func TestRowsHandlerTakesTooLong(t *testing.T) {
	t.Parallel()
	var sleepy atomic.Bool
	sleepy.Store(true)
	p := startRows(t, `"page_timeout": "500 ms", "retry_policy": {"base_seconds": 2, "max_attempts": 5}`, func(ctx context.Context, tx pgx.Tx, rows []consumer.Row) error {
		if sleepy.Load() && has(rows, "slow") {
			<-ctx.Done()
			return ctx.Err()
		}
		return noteRows(ctx, tx, rows)
	})
	p.born("a", "b", "slow", "c", "d", "e")
	p.eventually(effects, "a b c d e")
	p.eventually(`select snapshot ->> 'name' from tidemark.pending_row where last_error like '%longer than 500ms%'`, "slow")
	sleepy.Store(false)
	p.eventually(effects, "a b c d e slow")
	p.eventually(waiting)
	p.eventually(dead)
}

// A page_timeout that an operator changes counts for the program that runs.
func TestRowsPageTimeoutChanges(t *testing.T) {
	t.Parallel()
	p := startRows(t, `"page_timeout": "200 ms", "retry_policy": {"base_seconds": 0.1, "max_attempts": 100}`, func(ctx context.Context, tx pgx.Tx, rows []consumer.Row) error {
		if _, err := tx.Exec(ctx, `select pg_sleep(0.5)`); err != nil {
			return err
		}
		return noteRows(ctx, tx, rows)
	})
	p.born("a")
	p.eventually(`select snapshot ->> 'name' from tidemark.pending_row where last_error like '%longer than 200ms%'`, "a")
	p.exec(`select tidemark.worker_set('billing.rows', '{"page_timeout": "5 s"}')`)
	p.eventually(effects, "a")
}

// Two programs take turns; what one had begun when it was stopped, or replaced, is done once.
func TestRowsTwoInstances(t *testing.T) {
	t.Parallel()
	p := startRows(t, `"page_size": 7`, noteRows)
	stops := []func(){p.stop, p.runRows(noteRows)}
	for i := range 6 {
		for n := range 20 {
			p.born(fmt.Sprint(i*20 + n))
		}
		if i == 3 { // an epoch that is over: fenced
			p.exec(`update tidemark.heartbeat set lease_epoch = lease_epoch + 1, lease_until = null, lease_owner = null where executor_id = 'billing.rows/births/0'`)
		}
		stops[i%2]()
		stops[i%2] = p.runRows(noteRows)
	}
	p.eventually(`select count(*) || ' ' || count(distinct n) from effect`, "120 120")
	p.eventually(`select kind from tidemark.finding where kind <> 'cursor_lease_conflict'`)
}

// A program that is told to stop in the middle of a page ends it: no page is handled twice.
func TestRowsStop(t *testing.T) {
	t.Parallel()
	began, end := make(chan struct{}), make(chan struct{})
	p := startRows(t, "", func(ctx context.Context, tx pgx.Tx, rows []consumer.Row) error {
		began <- struct{}{}
		<-end
		return noteRows(ctx, tx, rows)
	})
	p.born("a")
	<-began
	stopped := make(chan struct{})
	go func() { p.stop(); close(stopped) }()
	close(end)
	<-stopped
	p.eventually(effects, "a")
	p.eventually(`select last_run_summary ->> 'taken' from tidemark.worker_cursor where worker = 'billing.rows'`, "1")
}

func TestHandleRowsArguments(t *testing.T) {
	t.Parallel()
	p := program{t: t, db: tidemarktest.NewDB(t)}
	client, err := consumer.New(p.db.Pool, consumer.Config{Worker: "billing"})
	if err != nil {
		t.Fatal(err)
	}
	client.HandleRows("births", noteRows)
	if err := client.Run(t.Context()); !errors.Is(err, tidemark.ErrNotFound) {
		t.Errorf("%v, want that there is no such source", err)
	}
	for _, call := range []func(){func() { client.HandleRows("births", noteRows) }, func() { client.HandleRows("x", nil) }} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			call()
		}()
	}
}

// A row that the database cannot show as JSON, one whose JSON nests deeper than Go decodes, and one for which the source's filter
// fails: each is refused by itself, its handler's attempts as well as those that no handler sees. The others go on, in order.
func TestHandleRowsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	p := startRows(t, "", noteRows)
	p.stop()
	p.exec(`alter table births add column doc json, add column deep jsonb, add column n integer not null default 1; alter table effect add column at bigint generated always as identity`)
	p.exec(`select tidemark.source_set('births', '{"filter": "1 / n > 0"}')`)
	p.exec(`insert into births (born_at, name, doc, deep, n) select now() - interval '1 minute' + n * interval '1 s', n::text,
		case n when 3 then json '"\u0000"' when 4 then json '1e999999' end,
		case n when 6 then (repeat('[', 10100) || repeat(']', 10100))::jsonb end, case n when 8 then 0 else 1 end from generate_series(1, 10) n`)
	const inOrder = `select coalesce(string_agg(n, ' ' order by at), '') from effect`
	const dead = `select concat_ws(' ', item_id, attempts, error_code, error_detail, event_snapshot ->> 'name') from tidemark.dead_letter where resolved_at is null order by item_id::int`
	letters := []string{
		"3 3 22P05 the row cannot be read as jsonb: column doc 3", "4 3 22003 the row cannot be read as jsonb: column doc 4",
		"6 3 handler invalid character '[' exceeded max depth 6", "8 1 22012 the filter of the source fails: division by zero 8",
	}
	p.stop = p.runRows(noteRows)
	p.eventually(inOrder, "1 2 5 7 9 10")
	p.eventually(dead, letters...)
	p.exec(`insert into births (born_at, name, doc) values (now() - interval '30 minutes', 'late', null), (now() - interval '29 minutes', 'late too', json '"\ud800"'), (now(), 'after', '{}')`)
	p.exec(`update tidemark.worker_cursor set sweep = sweep - 'done_at'`)
	p.eventually(inOrder, "1 2 5 7 9 10 after late")
	p.eventually(dead, append(letters, "12 3 22P02 the row cannot be read as jsonb: column doc late too")...)
	p.eventually(`select kind || ' ' || subject from tidemark.finding where closed_at is null`, "cursor_dlq billing.rows/births/0")

	// One is mended, one is gone, and one is taken as it is. Sweeps leave them alone.
	p.exec(`update tidemark.worker_cursor set sweep = sweep - 'done_at'`)
	p.exec(`update births set doc = '{}' where id = 3; delete from births where id = 4`)
	p.exec(`select tidemark.dead_letter_replay(id) from tidemark.dead_letter where item_id in ('3', '4', '8')`)
	p.eventually(`select coalesce(string_agg(n, ' ' order by n), '') from effect where n in ('3', '8')`, "3 8") // in any order
	p.eventually(`select concat_ws(' ', error_code, error_detail) from tidemark.dead_letter where item_id = '4'`,
		"TM005 the row is gone, and its snapshot could not hold column doc")
}
