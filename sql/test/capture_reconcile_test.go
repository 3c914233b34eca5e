package test

import (
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

const reconcile = `select concat_ws(' ', relation, status, changes, events, captured, missing_keys) from tidemark.capture_reconcile()`

// counted waits until the server counts n inserts into orders: its statistics come some time after the commit.
func (s session) counted(n int) {
	s.t.Helper()
	s.exec(`select pg_stat_force_next_flush()`)
	for one[int](s, `select coalesce(sum(n_tup_ins), 0)::int from pg_stat_all_tables where relname = 'orders'`) < n {
		s.exec(`select pg_stat_force_next_flush()`)
	}
}

// CA4.
func TestCaptureReconcile(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key, n int)`)
	s.wantRows(reconcile, "public.orders first")
	s.exec(`insert into orders select g from generate_series(1, 5) g`)
	s.counted(5)
	s.wantRows(reconcile, "public.orders ok 5 5 0 {}")
	s.exec(`set session_replication_role = replica; insert into orders values (6), (7); reset session_replication_role; insert into orders values (8)`)
	s.counted(8)
	s.wantRows(reconcile, "public.orders gap 3 1 0 {6,7}")
	s.wantRows(`select concat_ws(' ', kind, subject, detail ~ '3 changes .* 1 events.*: 6 7$') from tidemark.finding where closed_at is null`, "capture_gap public.orders t")
	s.exec(`select tidemark.capture_gap_accept(id, 'a test') from tidemark.capture_gap`)
	s.begin()
	s.exec(`insert into orders values (9)`)
	s.rollback()
	s.counted(9)
	s.wantRows(reconcile, "public.orders unclear 1 0 0 {}")
	s.exec(`insert into orders values (9)`)
	s.counted(10)
	s.wantRows(reconcile, "public.orders ok 1 1 0 {}")
	s.wantRows(`select kind from tidemark.finding where closed_at is null`)
	s.exec(`update tidemark.inbound_route set dry_run = true`)
	s.wantRows(reconcile, "public.orders unknown")
	s.exec(`select pg_stat_reset()`)
	s.wantRows(reconcile, "public.orders unknown 0 0 {}")
	s.exec(`update orders set n = 1 where id = 1`)
	if got := one[string](s, reconcile); !strings.HasSuffix(got, " 0 1") {
		t.Error(got)
	}
}

// The server's count of a change may come long after its commit: the events of the minute before are no gap when it comes, and each
// counts once.
func TestCaptureReconcileWaitsForTheServersCount(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, operator := open(t, db, "app"), open(t, db, "operator")
	s.exec(`select tidemark.stage_set('live', 'test'); create table orders (id int primary key)`)
	s.capture("orders")
	s.exec(`update tidemark.inbound_route set enabled = false where sql_event <> 'insert'`)
	status := func(want string) {
		t.Helper()
		operator.wantRows(`select status from tidemark.capture_reconcile()`, want)
	}
	status("first")
	for id := 1; id <= 5; id += 2 {
		s.exec(`select pg_stat_force_next_flush()`)
		s.exec(`insert into orders values ($1), ($1 + 1)`, id) // it may be counted in a second
		status("ok")
		s.counted(id + 1)
		status("ok")
	}
	// A row that came and went without an event. Only the server's count tells.
	s.exec(`set session_replication_role = replica; insert into orders values (7); delete from orders where id = 7; reset session_replication_role`)
	s.counted(7)
	status("gap")
}

// A snapshot does not list savepoints: an event written in one belongs to the comparison after its transaction ended.
func TestCaptureReconcileOfSavepoints(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, b, operator := open(t, db, "app"), open(t, db, "b"), open(t, db, "operator")
	s.exec(`select tidemark.stage_set('live', 'test'); create table orders (id int primary key)`)
	s.capture("orders")
	s.exec(`update tidemark.inbound_route set enabled = false where sql_event <> 'insert'`)
	b.begin()
	b.exec(`insert into orders values (1); savepoint a; insert into orders values (2)`)
	s.exec(`insert into orders values (3)`) // a later transaction that has ended: the savepoint is below the end of the snapshot
	operator.wantRows(`select status from tidemark.capture_reconcile()`, "first")
	b.commit()
	b.exec(`select pg_stat_force_next_flush()`)
	s.counted(3)
	operator.wantRows(`select concat_ws(' ', status, missing_keys) from tidemark.capture_reconcile()`, "ok {}")
	operator.wantRows(gapFindings)
}

// A row without event that was written in a savepoint belongs to the comparison, and to the gap, after its transaction ended.
func TestCaptureReconcileOfRowsInSavepoints(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, b, operator := open(t, db, "app"), open(t, db, "b"), open(t, db, "operator")
	s.exec(`select tidemark.stage_set('live', 'test'); create table orders (id int primary key)`)
	s.capture("orders")
	b.exec(`set session_replication_role = replica`)
	b.begin()
	b.exec(`insert into orders values (0); savepoint a; insert into orders values (1); release a; savepoint b; insert into orders values (2); savepoint c; insert into orders values (3)`)
	// A later transaction that has ended: the savepoints are below the end of the snapshot. Its rows are of before the comparison.
	s.exec(`set session_replication_role = replica; insert into orders values (10); reset session_replication_role; insert into orders values (11)`)
	operator.wantRows(`select status from tidemark.capture_reconcile()`, "first")
	operator.wantRows(reconciled, "ok {}")
	b.commit()
	b.exec(`select pg_stat_force_next_flush()`)
	s.counted(6)
	operator.wantRows(reconciled, "gap {0,1,2,3}")
	operator.wantRows(emitGap, "4 t")
	operator.wantRows(`select string_agg(key, ' ' order by seq) from tidemark.outbox`, "11 0 1 2 3")
}

// So it is with the gap of a trigger that does not fire, of a table that was never compared.
func TestCaptureTriggerIsMissedBySavepoints(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, b := open(t, db, "app"), open(t, db, "b")
	s.exec(`select tidemark.stage_set('live', 'test'); create table orders (id int primary key)`)
	s.capture("orders")
	s.exec(`alter table orders disable trigger tidemark_capture_insert`)
	b.begin()
	b.exec(`savepoint a; insert into orders values (1), (2)`)
	s.exec(`create table later ()`) // a later transaction that has ended
	s.exec(`select tidemark.maintain()`)
	s.wantRows(gapFindings, "capture_gap public.orders")
	b.commit()
	s.exec(`alter table orders enable trigger tidemark_capture_insert`)
	s.wantRows(emitGap, "2 t")
}

// What was done in dry run is summed up, and forgotten.
func TestMaintainSumsUpCaptured(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key)`)
	s.exec(`insert into tidemark.captured (at, route_id, outcome, rows, actor) select date_trunc('hour', now()) - make_interval(hours => h, secs => n), 1, 'dry_run', n, 'ann' from generate_series(1, 3) n, unnest(array[2, 3, 2000]) h`)
	s.exec(`insert into tidemark.captured (at, route_id, outcome, rows, actor) values (now(), 1, 'dry_run', 7, 'ann')`)
	for range 2 {
		s.exec(`select tidemark.maintain()`)
		s.wantRows(`select concat_ws(' ', rows, statements) from tidemark.captured order by at`, "6 3", "6 3", "7 1")
	}
}

// CA5.
func TestCaptureGuard(t *testing.T) {
	t.Parallel()
	s := captured(t, "parcels", `create table parcels (id int primary key)`)
	s.exec(`create table orders (id int primary key); create function other() returns trigger language plpgsql as 'begin return null; end'`)
	stray := `create trigger mine after insert on orders for each statement execute function tidemark.capture_1()`
	s.refused("TM005", "capture guard needs a reason", `select tidemark.capture_guard(true, '')`)
	s.exec(`select tidemark.capture_guard(true, 'why'); select tidemark.capture_guard(true, 'again')`)
	s.refused("TM005", "trigger mine of public.orders calls tidemark.capture_1, and the table has no inbound route", stray)
	s.exec(`create trigger theirs after insert on orders for each statement execute function other()`)
	s.exec(`select tidemark.inbound_route_set('new', '{"source_schema": "public", "source_table": "orders", "sql_event": "insert", "domain": "app", "type": "insert"}')`)
	s.exec(`select tidemark.capture_attach('orders', 'why'); delete from tidemark.inbound_route`)
	s.exec(`select tidemark.capture_guard(false, 'done'); ` + stray)
	s.wantRows(`select reason || ' ' || after from tidemark.audit where action = 'capture_guard' order by id`, `why ["true"]`, `again ["true"]`, `done ["false"]`)
	s.exec(`set role tidemark_admin`)
	s.refused("42501", "only a superuser", `select tidemark.capture_guard(true, 'why')`)
}
