package test

import (
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

const (
	gapFindings = `select concat_ws(' ', kind, subject) from tidemark.finding where closed_at is null`
	openGaps    = `select concat_ws(' ', name, keys, rows, others, sampled) from tidemark.capture_gap where resolved_at is null`
	reconciled  = `select concat_ws(' ', status, missing_keys) from tidemark.capture_reconcile()`
	emitGap     = `select concat_ws(' ', e.emitted, e.complete) from tidemark.capture_gap g cross join lateral tidemark.capture_gap_emit(g.id) e where g.resolved_at is null`
)

// CA4, CA6: each way by which a trigger is lost leaves a gap, which no later reconcile heals: its rows are emitted from
// the table, or it is accepted.
func TestCaptureGapStays(t *testing.T) {
	t.Parallel()
	lose := map[string]string{
		"bypassed": `set session_replication_role = replica; %s; reset session_replication_role`,
		"disabled": `alter table orders disable trigger all; %s; alter table orders enable trigger all`,
		"dropped":  `select tidemark.capture_detach('orders', 'lost'); %s; select tidemark.capture_attach('orders', 'back')`,
	}
	for name, way := range lose {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := captured(t, "orders", `create table orders (id int primary key, n int)`)
			s.exec(`select tidemark.inbound_route_set(r.route_code, '{"payload_columns": ["n"]}') from tidemark.inbound_route r where r.sql_event = 'insert'`)
			s.exec(`insert into orders values (1, 1)`)
			s.counted(1)
			s.exec(reconciled)
			s.exec(strings.Replace(way, "%s", `insert into orders values (2, 2), (3, 3), (4, 4); delete from orders where id = 4`, 1))
			s.exec(`insert into orders values (5, 5)`)
			s.counted(5)
			s.wantRows(reconciled, "gap {2,3}")
			for range 2 {
				s.wantRows(reconciled, "gap {}")
				s.wantRows(gapFindings, "capture_gap public.orders")
			}
			s.wantRows(openGaps, "public.orders {2,3} 2 0 f")

			before := one[int](s, `select max(seq) from tidemark.outbox`)
			s.exec(`update orders set n = 33 where id = 3`) // this has an event since
			s.wantRows(emitGap, "1 t")
			s.wantRows(emitGap)
			s.wantRows(`select concat_ws(' ', type, key, subject_table, subject_ref, payload - 'schema' - 'table') from tidemark.outbox where payload ? 'reconciled'`,
				`insert 2 public.orders 2 {"columns": {"n": 2}, "operation": "insert", "reconciled": true, "primary_key": {"id": 2}}`)
			equal(t, "events", one[int](s, `select count(*) from tidemark.outbox where seq > $1`, before), 2)
			s.wantRows(gapFindings)
			s.wantRows(`select concat_ws(' ', emitted, resolution, resolved_by = session_user) from tidemark.capture_gap`, "1 emitted t")
			s.wantRows(`select action from tidemark.audit where action like 'capture_gap%'`, "capture_gap_emitted")
			s.exec(`insert into orders values (6)`)
			s.counted(6)
			if got := one[string](s, reconciled); strings.HasPrefix(got, "gap") {
				t.Error(got)
			}
		})
	}
}

// CU12: a comparison that looked at a part of the rows says so, in its answer, in the gap and in the finding.
func TestCaptureReconcileSaysThatItSamples(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key, n int)`)
	s.exec(reconciled)
	s.exec(`set session_replication_role = replica; insert into orders select g from generate_series(1, 5) g; reset session_replication_role`)
	s.counted(5)
	s.wantRows(`select concat_ws(' ', status, missing_keys, detail ~ '; of the rows written since, 2 were looked at$')
		from tidemark.capture_reconcile(sample => 2)`, "gap {1,2} t")
	s.wantRows(openGaps, "public.orders {1,2} 2 0 t")
	s.wantRows(`select concat_ws(' ', kind, detail ~ 'of the rows written since, 2 were looked at') from tidemark.finding where closed_at is null`, "capture_gap t")
	s.wantRows(emitGap, "5 t")
}

// What is lost after a gap was found is added to it: both are emitted.
func TestCaptureGapGrows(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key)`)
	s.exec(reconciled)
	for _, c := range []struct{ lost, found, open string }{{"2", "gap {2}", "{2} 1"}, {"3", "gap {3}", "{2,3} 2"}} {
		s.exec(`set session_replication_role = replica; insert into orders values (` + c.lost + `); reset session_replication_role`)
		s.wantRows(reconciled, c.found)
		s.wantRows(openGaps, "public.orders "+c.open+" 0 f")
	}
	s.wantRows(emitGap, "2 t")
	s.wantRows(gapFindings)
}

// Reconcile tells of a trigger that does not fire before a row is lost by it.
func TestCaptureReconcileSeesTheTrigger(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key)`)
	s.exec(reconciled)
	s.exec(`alter table orders disable trigger tidemark_capture_insert`)
	s.wantRows(`select status || ': ' || split_part(detail, ';', 1) from tidemark.capture_reconcile()`, "gap: its trigger for insert is missing, altered or disabled")
	s.wantRows(gapFindings, "capture_gap public.orders")
}

// What has no row any more is counted, and can only be accepted, with a reason.
func TestCaptureGapIsAccepted(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key, n int)`)
	s.exec(`delete from tidemark.inbound_route where sql_event in ('update', 'truncate')`)
	// Rows of before the capture. An event of the last minute could have been counted late, and would hide a gap.
	s.exec(`set session_replication_role = replica; insert into orders select generate_series(1, 9); reset session_replication_role`)
	s.counted(9)
	s.exec(reconciled)
	s.exec(`set session_replication_role = replica; delete from orders where id < 4; insert into orders values (10); reset session_replication_role`)
	s.counted(10)
	for one[int](s, `select coalesce(sum(n_tup_del), 0)::int from pg_stat_all_tables where relname = 'orders'`) < 3 {
		s.exec(`select pg_stat_force_next_flush()`)
	}
	s.wantRows(reconciled, "gap {10}")
	s.wantRows(openGaps, "public.orders {10} 1 3 f")
	s.wantRows(emitGap, "1 t")
	s.wantRows(`select concat_ws(' ', emitted, others, resolved_at is null) from tidemark.capture_gap`, "1 3 t")
	s.wantRows(gapFindings, "capture_gap public.orders")
	const accept = `select tidemark.capture_gap_accept(id, $1) from tidemark.capture_gap`
	s.refused("TM005", "needs a reason", accept, " ")
	s.exec(accept, "they were tests")
	s.refused("TM004", "there is no open gap", accept, "again")
	s.wantRows(gapFindings)
	s.wantRows(`select concat_ws(' ', action, reason) from tidemark.audit where action like 'capture_gap%'`, "capture_gap_accepted they were tests")
}

// Two at once emit each row once; what the contract or a limit refuses is refused here too, and the gap stays.
func TestCaptureGapEmittedTwiceAtOnce(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, other, watch := open(t, db, "app"), open(t, db, "other"), open(t, db, "watch")
	s.exec(`select tidemark.stage_set('live', 'test'); create table orders (id int primary key, doc jsonb)`)
	s.capture("orders")
	s.exec(`select tidemark.domain_set('app', '{"metadata_only": true}')`)
	s.exec(`select tidemark.inbound_route_set(r.route_code, '{"payload_columns": ["doc"]}') from tidemark.inbound_route r where r.sql_event = 'insert'`)
	s.exec(reconciled)
	s.exec(`set session_replication_role = replica; insert into orders values (1, '{}'), (2, '{"a": {"Pass-Word": 1}}'); reset session_replication_role`)
	s.counted(2)
	s.wantRows(reconciled, "gap {1,2}")
	s.refused("TM003", `payload holds the forbidden key "password"`, emitGap)
	s.wantRows(openGaps, "public.orders {1,2} 2 0 f")
	s.exec(`set session_replication_role = replica; update orders set doc = '{}'; reset session_replication_role`)
	s.begin()
	s.wantRows(emitGap, "2 t")
	result := later[string](other, emitGap)
	watch.waitsFor(other)
	s.commit()
	if got, err := result(); got != "0 t" || err != nil {
		t.Error(got, err)
	}
	s.wantRows(`select count(*)::text from tidemark.outbox`, "2")
}

// A trigger of an enabled route that does not fire is noticed by maintain, which runs each minute, and stays a gap when
// it is back before anything was compared. So is another table under the name.
func TestCaptureTriggerIsMissed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, lose, found, back string }{
		{"disabled", `alter table orders disable trigger tidemark_capture_insert`, "insert", `alter table orders enable trigger tidemark_capture_insert`},
		{"replica", `alter table orders enable replica trigger tidemark_capture_insert`, "insert", `alter table orders enable trigger tidemark_capture_insert`},
		{"dropped", `drop trigger tidemark_capture_insert on orders; drop trigger tidemark_capture_delete on orders`, "delete, insert", `select tidemark.capture_attach('orders', 'back')`},
		{"swapped", `alter table orders rename to old; create table orders (id int primary key)`, "delete, insert, truncate, update", `select tidemark.capture_attach('orders', 'back')`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := captured(t, "orders", `create table orders (id int primary key)`)
			s.exec(reconciled)
			s.exec(`select tidemark.maintain()`)
			s.wantRows(gapFindings)
			s.exec(c.lose)
			s.exec(`insert into orders values (1)`)
			for range 2 {
				s.exec(`select tidemark.maintain()`)
				s.wantRows(`select concat_ws(' ', kind, subject, severity, count, detail) from tidemark.finding where closed_at is null`,
					"capture_gap public.orders high 1 its trigger for "+c.found+" is missing, altered or disabled")
			}
			s.refused("TM005", "is not captured for insert at the moment", emitGap)
			s.exec(c.back)
			s.exec(`select tidemark.maintain()`)
			s.wantRows(gapFindings, "capture_gap public.orders")
			s.wantRows(emitGap, "1 t")
			s.wantRows(gapFindings)
			s.wantRows(`select key from tidemark.outbox`, "1")
		})
	}
	t.Run("attached before maintain looks", func(t *testing.T) {
		t.Parallel()
		s := captured(t, "orders", `create table orders (id int primary key)`)
		s.wantRows(gapFindings) // it was attached, and never compared
		s.exec(reconciled)
		s.exec(`alter table orders disable trigger tidemark_capture_insert; insert into orders values (1), (2)`)
		s.wantRows(`select cli::text from tidemark.cause where cause = 'capture_disabled'`,
			`{"tidemark capture attach public.orders --reason 'its trigger was off'","tidemark capture reconcile --table public.orders --emit --reason 'its trigger was off'"}`)
		s.exec(`select tidemark.capture_attach('orders', 'back')`)
		s.wantRows(gapFindings, "capture_gap public.orders")
		s.wantRows(emitGap, "2 t")
		s.wantRows(gapFindings)
	})
	t.Run("swapped and back", func(t *testing.T) {
		t.Parallel()
		s := captured(t, "orders", `create table orders (id int primary key)`)
		s.exec(reconciled)
		s.exec(`drop table orders; create table orders (id int primary key); insert into orders values (7); select tidemark.capture_attach('orders', 'back')`)
		s.wantRows(reconciled, "gap")
		s.wantRows(emitGap, "1 t")
		s.wantRows(gapFindings)
	})
}

// A row that jsonb cannot hold stays in the gap by itself, by name, and the others are emitted; once it is changed, so is it.
func TestCaptureGapOfARowThatJSONBCannotHold(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key, doc json)`)
	s.exec(`select tidemark.inbound_route_set(r.route_code, '{"payload_columns": ["doc"]}') from tidemark.inbound_route r where r.sql_event = 'insert'`)
	s.exec(`insert into orders values (0)`)
	s.counted(1)
	s.exec(reconciled)
	lost := func(rows string) {
		t.Helper()
		s.exec(`set session_replication_role = replica; ` + rows + `; reset session_replication_role`)
	}
	lost(`insert into orders select n, case n when 3 then '"\u0000"' when 7 then '1e999999' else '{}' end::json from generate_series(1, 9) n`)
	s.counted(10)
	s.wantRows(reconciled, "gap {1,2,3,4,5,6,7,8,9}")
	s.wantRows(emitGap, "7 t")
	s.wantRows(`select string_agg(key, ' ' order by seq) from tidemark.outbox where payload ? 'reconciled'`, "1 2 4 5 6 8 9")
	const unreadable = `select unreadable::text from tidemark.capture_gap where resolved_at is null`
	s.wantRows(unreadable, `{"3 (22P05)","7 (22003)"}`)
	s.wantRows(`select concat_ws(' ', kind, subject, detail) from tidemark.finding where closed_at is null`,
		"capture_gap public.orders rows cannot be emitted, since jsonb cannot hold them: 3 (22P05), 7 (22003); change them, or accept the gap")
	s.wantRows(reconciled, "gap {}")

	lost(`update orders set doc = '[]' where id = 3`)
	s.wantRows(emitGap, "1 t")
	s.wantRows(unreadable, `{"7 (22003)"}`)
	lost(`delete from orders where id = 7`)
	s.wantRows(emitGap, "0 t")
	s.wantRows(gapFindings)
}

// More such rows than a call looks at hide no row behind them.
func TestCaptureGapOfManyUnreadableRows(t *testing.T) {
	t.Parallel()
	s := captured(t, "orders", `create table orders (id int primary key, doc json)`)
	s.exec(`select tidemark.inbound_route_set(r.route_code, '{"payload_columns": ["doc"]}') from tidemark.inbound_route r where r.sql_event = 'insert'`)
	s.exec(reconciled)
	s.exec(`set session_replication_role = replica;
		insert into orders select n, case when n < 2500 then '"\u0000"' else '{}' end::json from generate_series(1, 2510) n;
		reset session_replication_role`)
	s.counted(2510)
	s.exec(reconciled)
	for one[int](s, `select count(*)::int from tidemark.capture_gap_emit((select g.id from tidemark.capture_gap g)) e where not e.complete`) > 0 {
	}
	s.wantRows(`select concat_ws(' ', min(key), max(key), count(*)) from tidemark.outbox`, "2500 2510 11")
	s.wantRows(`select concat_ws(' ', cardinality(unreadable), emitted, resolved_at is null) from tidemark.capture_gap`, "1000 11 t")
}
