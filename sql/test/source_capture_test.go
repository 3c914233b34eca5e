package test

import (
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// With the safety capture the log says which rows there are: ids of any type, no timestamp, and late commits
// like those of any event.
func TestSourceByCapture(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := open(t, db, "operator")
	s.exec(`create table public.parcels (id uuid primary key default gen_random_uuid(), n int not null, born timestamptz);
		create table public.handled (n int);
		create function public.handle(rows public.parcels[]) returns void language plpgsql as $$ begin
			if exists (select from unnest(rows) r where r.n = 666) then raise exception 'no such parcel'; end if;
			insert into public.handled select r.n from unnest(rows) r; end $$;
		insert into public.parcels (n) values (-1)`)
	s.exec(`select tidemark.stage_set('live', 'test'), tidemark.gate_set('routes.enabled', true), tidemark.domain_set('parcels'), tidemark.type_set('parcels', 'made'), tidemark.domain_set('test'), tidemark.type_set('test', 'tick')`)
	s.exec(`select tidemark.inbound_route_set('parcels', '{"source_schema": "public", "source_table": "parcels", "sql_event": "insert", "domain": "parcels", "type": "made", "enabled": true, "dry_run": false}', 'test')`)
	s.exec(`select tidemark.capture_attach('public.parcels', 'test')`)
	s.exec(`select tidemark.source_set('parcels', '{"table": "public.parcels", "id_column": "id", "timestamp_column": "born", "safety": "capture"}');
		select tidemark.worker_set('w', '{"source": "table", "handler": "sql", "handler_ref": "public.handle", "page_size": 3, "retry_policy": {"max_attempts": 1}}');
		select tidemark.worker_source_add('w', 'parcels'), tidemark.gate_set('worker.w.enabled', true)`)
	drain := func() {
		t.Helper()
		for one[bool](s, `select (tidemark.worker_run('w') ->> 'more')::boolean`) {
		}
	}

	late, gone := open(t, db, "late"), open(t, db, "gone")
	late.begin()
	late.exec(`insert into public.parcels (n) values (1)`)
	gone.begin()
	gone.exec(`insert into public.parcels (n) values (2)`)
	s.exec(`insert into public.parcels (n) select generate_series(3, 9)`)
	s.exec(`insert into public.parcels (n) values (666)`)
	s.emit(1) // of no captured table
	drain()
	s.wantRows(`select n::text from public.handled order by n`, "3", "4", "5", "6", "7", "8", "9")
	late.commit()
	gone.rollback()
	drain()
	drain()
	s.wantRows(`select n::text from public.handled order by n`, "1", "3", "4", "5", "6", "7", "8", "9")
	s.wantRows(`select error_detail || ' ' || (event_snapshot ->> 'n') from tidemark.dead_letter`, "no such parcel 666")
	s.wantRows(`select isempty(holes + fenced)::text from tidemark.worker_cursor where worker = 'w'`, "true")

	// An update is no new row, and who captures nothing more is told by the doctor.
	s.exec(`update public.parcels set n = 100 + n where n = 3`)
	drain()
	s.wantRows(`select count(*)::text from public.handled`, "8")
	// Of the log those events are counted that name a new row.
	s.wantRows(`select concat_ws(' ', rows, complete, problem) from tidemark.source_rewind_outlook('w', 'parcels', to_id => '0')`, "9 t")
	s.exec(`select tidemark.capture_detach('public.parcels', 'test')`)
	s.wantRows(`select c.status from tidemark.source s cross join lateral tidemark.source_check(s) c where c."check" = 'capture trigger'`, "warn")
	if held := one[int](s, `select count(*)::int from tidemark.finding where closed_at is null and kind like 'source%'`); held != 0 {
		t.Error(held, "findings")
	}
}

// An event that the worker of a captured table has not read yet says that a row is new: erased, it would say nothing.
func TestEventsEraseLeavesCapturedRows(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := open(t, db, "operator")
	s.takesOrders()
	s.exec(`insert into orders values (1), (2)`)
	const erase = `select concat_ws(' ', events, waiting) from tidemark.events_erase('app', 'asked', before => 'infinity')`
	s.wantRows(erase, "0 2")
	s.takeOrders()
	s.exec(`insert into orders values (3)`)
	s.wantRows(erase, "2 1")
	s.takeOrders()
	s.wantRows(`select id::text from taken order by n`, "1", "2", "3")
	s.wantRows(erase, "1 0")
}

// What a worker of a captured table has still to read keeps the events of its new rows alone, however far behind or paused it is.
func TestEventsEraseBesideACapturedTable(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := open(t, db, "operator")
	s.takesOrders()
	s.exec(`update tidemark.worker_cursor set paused_at = clock_timestamp() where worker = 'w';
		create table other (id int primary key)`)
	s.capture("other")
	s.exec(`select tidemark.emit_strict('app', 'insert', '{"operation": "insert", "name": "Ada"}', subject_ref => 'ada')`)
	s.exec(`insert into other values (1); insert into orders values (1); update orders set n = 1; insert into orders values (2)`)
	s.wantRows(`select concat_ws(' ', seq, who) from tidemark.payload_needed('app', 0, 5, '{1,2,3,4,5}')`, "3 the cursor of worker w")
	const erase = `select concat_ws(' ', events, waiting) from tidemark.events_erase('app', 'asked', before => 'infinity')`
	s.wantRows(erase, "3 2")
	s.exec(`update tidemark.worker_cursor set paused_at = null where worker = 'w'`)
	s.takeOrders()
	s.wantRows(`select id::text from taken order by n`, "1", "2")
	s.wantRows(erase, "2 0")
}

// Which events a worker of a captured table has to read is asked of those events alone, however long the log is and whatever its statistics say.
func TestUnreadOfACapturedTableReadsNoMore(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "operator")
	s.takesOrders()
	s.exec(`insert into orders values (1), (2)`)
	s.exec(`select tidemark.emit_strict('app', 'insert', jsonb_build_object('n', n)) from generate_series(1, 10000) n`)
	for _, statistics := range []string{"old", "new"} {
		n := s.readsOf("outbox", func() {
			s.wantRows(`select concat_ws(' ', u.seq, u.worker) from tidemark.log_unread('app', array(select generate_series(1, 2000))) u`, "1 w", "2 w")
		})
		if n > 2000 {
			t.Errorf("%s statistics: %d rows of the log are read for 2000 events", statistics, n)
		}
		s.exec(`analyze tidemark.outbox; discard plans`)
	}
}

// A row that was deleted and inserted again before it was read is named by two events: it is handed over once, and fails once.
func TestSourceCapturedTwice(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "operator")
	s.takesOrders()
	s.exec(`alter function take rename to really_take; create function take(rows orders[]) returns void language plpgsql as $$ begin
		if exists (select from unnest(rows) r where r.n = 666) then raise 'not this one'; end if;
		perform public.really_take(rows); end $$`)
	s.exec(`insert into orders values (1, 0), (7, 0), (8, 0); delete from orders where id in (7, 8); insert into orders values (9, 0), (7, 666), (8, 0)`)
	s.takeOrders()
	s.wantRows(`select id::text from taken order by n`, "1", "9", "8")
	s.wantRows(`select concat_ws(' ', item_id, error_count) from tidemark.pending_row`, "7 1")
}

// An event names its row by the primary key. A source that reads by another column would find no row, or a wrong one.
func TestSourceCapturedByThePrimaryKey(t *testing.T) {
	t.Parallel()
	s := tailing{open(t, tidemarktest.NewDB(t), "operator")}
	for name, table := range map[string]string{
		"two columns":    `(id text unique not null, made timestamptz not null default now(), n int, primary key (id, made))`,
		"another number": `(n int primary key, id bigint unique not null)`,
		"none":           `(n int, id uuid unique not null)`,
		"partitions":     `(id bigint, n int, primary key (id, n)) partition by list (n)`,
		"included":       `(n int, id bigint unique not null, primary key (n) include (id))`,
	} {
		s.exec(`create table things ` + table)
		s.refused("TM005", "the primary key of public.things is not id alone", `select tidemark.source_set('things', '{"table": "public.things", "id_column": "id", "safety": "capture"}')`)
		s.exec(`drop table things`)
		if t.Failed() {
			t.Fatal(name)
		}
	}

	// A worker whose table loses its key is held.
	s.takesOrders()
	s.exec(`insert into orders values (1, 10)`)
	s.takeOrders()
	s.exec(`alter table orders drop constraint orders_pkey, add unique (id), alter n set not null, add primary key (n)`)
	s.exec(`insert into orders values (2, 1)`)
	if got := s.once(); got.Status != "held" || !strings.Contains(got.Detail, "the primary key of public.orders is not id alone") {
		t.Errorf("%+v", got)
	}
	s.wantRows(`select id::text from taken`, "1")
}
