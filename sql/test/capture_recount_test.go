package test

import (
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

const compared = `select concat_ws(' ', name, status) from tidemark.capture_count`

// recount calls tidemark.maintain for one step of the comparison, as if a minute had passed.
func (s session) recount() {
	s.t.Helper()
	s.exec(`update tidemark.capture_round set at = '-infinity'`)
	// Autovacuum at work on the log postpones it.
	for one[bool](s, `select exists (select from tidemark.maintain() m where m.action = 'postponed')`) {
		s.t.Log("maintain was postponed")
	}
}

// recountUntil makes steps until one ends so. A step waits for transactions of the whole server, those of other tests too.
func (s session) recountUntil(state string) {
	s.t.Helper()
	s.recount()
	for !one[bool](s, `select `+state+` from tidemark.capture_round`) {
		s.recount()
	}
}

// round calls tidemark.maintain until a comparison has ended that began now.
func (s session) round() {
	s.t.Helper()
	// What this session did is counted, as that of each idle session is after ten seconds.
	s.exec(`select pg_stat_force_next_flush()`)
	s.recount()
	begun := one[string](s, `select noted_at::text from tidemark.capture_round`)
	for !one[bool](s, `select r.compared and r.noted_at > $1::text::timestamptz from tidemark.capture_round r`, begun) {
		s.recount()
	}
}

// wantMissed asks for changes without event between two rounds, as if the last one had been a minute ago.
func (s session) wantMissed(want ...string) {
	s.t.Helper()
	s.exec(`select pg_stat_force_next_flush()`)
	s.exec(`update tidemark.capture_round set noted_at = noted_at - interval '1 minute'`)
	s.wantRows(`select concat_ws(' ', name, inserts, deletes) from tidemark.capture_missed()`, want...)
	s.exec(`update tidemark.capture_round set noted_at = noted_at + interval '1 minute'`)
}

// recounted is a database with a captured table and its first rounds.
func recounted(t *testing.T, create string) (session, *tidemarktest.DB) {
	t.Helper()
	db := tidemarktest.NewDB(t)
	s := open(t, db, "app")
	s.exec(`select tidemark.stage_set('live', 'test')`)
	s.exec(create)
	s.capture("orders")
	s.round()
	s.round()
	s.wantRows(compared, "public.orders even")
	return s, db
}

// PK5, CU12: maintain alone finds what has no event, by counts; the gap stays until its rows are emitted.
func TestCaptureRecount(t *testing.T) {
	t.Parallel()
	s, _ := recounted(t, `create table orders (id int primary key, n int)`)
	s.exec(`insert into orders select g from generate_series(1, 5) g; update orders set n = 1; delete from orders where id = 5`)
	for range 2 {
		s.round()
		s.wantRows(compared, "public.orders even")
	}

	s.exec(`set session_replication_role = replica; insert into orders values (6), (7); reset session_replication_role; insert into orders values (8)`)
	s.wantMissed("public.orders 2 0")
	s.round()
	s.wantRows(compared, "public.orders gap")
	s.wantRows(gapFindings, "capture_gap public.orders")
	const counted = `select concat_ws(' ', name, counted, others) from tidemark.capture_gap where resolved_at is null`
	s.wantRows(counted, "public.orders 2 0")
	for range 3 {
		s.round()
		s.wantRows(compared, "public.orders even")
		s.wantRows(gapFindings, "capture_gap public.orders")
		s.wantRows(counted, "public.orders 2 0")
	}
	s.wantRows(emitGap, "2 t")
	s.wantRows(emitGap)
	s.wantRows(`select subject_ref from tidemark.outbox where payload ? 'reconciled' order by 1`, "6", "7")
	s.wantRows(gapFindings)
	for range 3 {
		s.round()
		s.wantRows(gapFindings)
	}
}

// Between two rounds changes without event are seen as soon as the server has counted them, and are counted once.
func TestCaptureMissed(t *testing.T) {
	t.Parallel()
	s, db := recounted(t, `create table orders (id int primary key, n int)`)
	s.exec(`insert into orders select g from generate_series(21, 25) g`)
	s.exec(`set session_replication_role = replica; insert into orders values (31), (32); reset session_replication_role`)
	s.wantMissed("public.orders 2 0")
	// A transaction that began before the last note may be that of a session that has not counted what it did before.
	other := open(t, db, "app")
	other.exec(`begin; select 1`)
	s.exec(`update tidemark.capture_round set noted_at = clock_timestamp() - interval '10 seconds'`)
	s.wantRows(`select name from tidemark.capture_missed()`)
	other.exec(`rollback`)
	s.wantRows(`select name from tidemark.capture_missed()`, "public.orders")
	s.exec(`update tidemark.capture_round set noted_at = noted_at - interval '1 minute', at = now()`)
	s.exec(`select tidemark.maintain()`)
	s.exec(`select tidemark.maintain()`)
	const open = `select concat_ws(' ', counted, others, emitted) from tidemark.capture_gap where resolved_at is null`
	s.wantRows(open, "2 0 0")
	s.round()
	s.round()
	s.wantRows(open, "2 0 0")
	s.wantRows(emitGap, "2 t")
	s.round()
	s.wantRows(gapFindings)
}

// A change that no row shows any more stays in the gap until it is accepted.
func TestCaptureRecountOfRowsThatAreGone(t *testing.T) {
	t.Parallel()
	s, _ := recounted(t, `create table orders (id int primary key, n int)`)
	const open = `select concat_ws(' ', counted, others, emitted) from tidemark.capture_gap where resolved_at is null`
	s.exec(`set session_replication_role = replica; insert into orders values (1), (2), (3); reset session_replication_role`)
	s.round()
	s.wantRows(open, "3 0 0")
	s.exec(`delete from orders where id = 3`)
	s.wantRows(emitGap, "2 t")
	s.wantRows(open, "2 1 2")
	s.wantRows(gapFindings, "capture_gap public.orders")
	s.exec(`select tidemark.capture_gap_accept(id, 'a test') from tidemark.capture_gap`)
	s.wantRows(gapFindings)

	s.round()
	s.round()
	s.exec(`set session_replication_role = replica; delete from orders; reset session_replication_role`)
	s.round()
	s.wantRows(open, "0 2 0")
	s.wantRows(emitGap, "0 t")
	s.wantRows(gapFindings, "capture_gap public.orders")
}

// Normal work raises no alarm: what is rolled back to a savepoint, refused, truncated or analyzed is no change without event.
func TestCaptureRecountOfNormalWork(t *testing.T) {
	t.Parallel()
	work := map[string]string{
		"savepoints": `do $$ begin for i in 1 .. 20 loop begin insert into orders values (1), (99); exception when unique_violation then null; end; end loop; end $$`,
		"rollback":   `begin; insert into orders select g from generate_series(100, 120) g; delete from orders; rollback`,
		"conflicts":  `insert into orders values (1), (50) on conflict do nothing; insert into orders values (1), (51) on conflict (id) do update set n = 7`,
		"truncate":   `truncate orders; insert into orders values (1)`,
		"analyze":    `insert into orders values (60); analyze orders`,
		"rewrite":    `insert into orders values (60); vacuum full orders`,
		"reset":      `insert into orders values (60); select pg_stat_reset()`,
		"dry run":    `update tidemark.inbound_route set dry_run = true; insert into orders values (60); update tidemark.inbound_route set dry_run = false`,
		"off":        `update tidemark.inbound_route set enabled = false; insert into orders values (60); update tidemark.inbound_route set enabled = true`,
		"unwritten":  `update tidemark.event_type set enabled = false; insert into orders values (60); update tidemark.event_type set enabled = true`,
	}
	for name, sql := range work {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := recounted(t, `create table orders (id int primary key, n int)`)
			s.exec(`insert into orders select g from generate_series(1, 9) g`)
			for _, statement := range []string{sql, `delete from orders where id between 3 and 5`, `insert into orders values (3)`} {
				if name == "rewrite" || name == "analyze" {
					s.exec(`insert into orders values (60) on conflict do nothing`)
					statement = map[string]string{sql: "vacuum (full, analyze) orders"}[statement]
				}
				s.exec(statement)
				s.wantMissed()
				for range 2 {
					s.round()
					s.wantRows(`select detail from tidemark.capture_gap`)
				}
			}
		})
	}
}

// A session may count what it committed only when its next transaction has ended.
func TestCaptureRecountWaitsForTheServersCount(t *testing.T) {
	t.Parallel()
	s, db := recounted(t, `create table orders (id int primary key, n int)`)
	b := open(t, db, "b")
	s.exec(`insert into orders select g from generate_series(1, 9) g`)
	s.round()
	s.round()
	b.exec(`select pg_stat_force_next_flush()`)
	s.exec(`select pg_stat_force_next_flush()`)
	s.recountUntil(`witness is not null`) // without the transaction of b
	b.exec(`delete from orders where id = 1`)
	b.begin()
	b.exec(`select 1`)
	// With this the count of inserts would bear out that one has no event.
	s.exec(`do $$ begin insert into orders values (20), (2); exception when unique_violation then null; end $$`)
	s.exec(`select pg_stat_force_next_flush()`)
	s.recountUntil(`not compared`)
	s.recountUntil(`compared`)
	s.wantRows(`select concat_ws(' ', status, round_deletes, deletes) from tidemark.capture_count`, "even 0 1")
	for range 7 {
		s.recount()
	}
	equal(t, "the next round waits", one[bool](s, `select witness is not null from tidemark.capture_round`), true)
	b.commit()
	b.exec(`select pg_stat_force_next_flush()`)
	for range 3 {
		s.round()
	}
	s.wantRows(compared, "public.orders even")
	s.wantRows(`select detail from tidemark.capture_gap`)
}

// The events of a round are final before they are counted: those of a transaction that outlasts the note are counted too.
func TestCaptureRecountWaitsForTransactions(t *testing.T) {
	t.Parallel()
	s, db := recounted(t, `create table orders (id int primary key, n int)`)
	b := open(t, db, "b")
	b.begin()
	s.recountUntil(`witness is not null`)
	b.exec(`savepoint a; insert into orders values (1), (2), (3)`)
	b.exec(`select pg_stat_force_next_flush()`)
	s.exec(`update tidemark.capture_round set witness = '{}'`)
	for range 4 {
		s.recount()
	}
	equal(t, "the round waits", one[bool](s, `select compared from tidemark.capture_round`), false)
	b.commit()
	s.recountUntil(`compared`)
	s.wantRows(`select concat_ws(' ', status, inserts) from tidemark.capture_count`, "even 3")
	for range 2 {
		s.round()
		s.wantRows(compared, "public.orders even")
	}
	s.wantRows(`select detail from tidemark.capture_gap`)
}

// Another table under the name is a gap, as for the operator's comparison; a part of the log that is gone is none, nor is a restored copy.
func TestCaptureRecountOfAnotherTable(t *testing.T) {
	t.Parallel()
	s, _ := recounted(t, `create table orders (id int primary key, n int)`)
	s.exec(`insert into orders values (1)`)
	s.recountUntil(`not compared`)
	s.exec(`update tidemark.capture_round set counted_seq = -7`)
	s.recountUntil(`compared`)
	s.wantRows(`select concat_ws(' ', status, detail) from tidemark.capture_count`, "unclear a part of the log is gone")
	s.wantRows(gapFindings)
	// A restored copy has another cluster, and tables of other numbers.
	s.exec(`update tidemark.capture_round set home = '1/1', snapshot = '99999999:99999999:'; update tidemark.capture_count set relation = 1`)
	s.round()
	s.round()
	s.wantRows(compared, "public.orders even")
	s.wantRows(gapFindings)
	s.exec(`drop table orders; create table orders (id int primary key); select tidemark.capture_attach('orders', 'again')`)
	s.round()
	s.wantRows(`select left(detail, 39) from tidemark.capture_gap where resolved_at is null`, "it is another table than the one that w")
}

// SE6: the role of a daemon starts a comparison and can do no more: it reads no row of the table, and writes no checkpoint.
func TestCaptureRecountNeedsNoRights(t *testing.T) {
	t.Parallel()
	s, db := recounted(t, `create table orders (id int primary key, n int)`)
	s.exec(`set session_replication_role = replica; insert into orders values (1); reset session_replication_role`)
	s.exec(`select pg_stat_force_next_flush()`)
	daemon := open(t, db, "daemon")
	daemon.exec(`set role tidemark_executor`)
	for !one[bool](s, `select exists (select from tidemark.capture_gap)`) {
		s.exec(`update tidemark.capture_round set at = '-infinity'`)
		daemon.exec(`select tidemark.maintain()`)
	}
	s.wantRows(gapFindings, "capture_gap public.orders")
	for _, sql := range []string{
		`select from orders`, `select tidemark.capture_recount()`, `delete from tidemark.capture_round`,
		`update tidemark.capture_count set base = null`, `select tidemark.capture_note('public.orders', r) from tidemark.capture_round r`,
	} {
		daemon.refused("42501", "permission denied", sql)
	}
}

// A table with partitions: rows that move between them are no changes, and one that is written past the trigger is.
func TestCaptureRecountOfPartitions(t *testing.T) {
	t.Parallel()
	s, _ := recounted(t, `create table orders (id int primary key, n int) partition by range (id);
		create table orders_1 partition of orders for values from (0) to (100); create table orders_2 partition of orders for values from (100) to (200)`)
	s.exec(`insert into orders select g from generate_series(1, 9) g; update orders set id = id + 100 where id < 4`)
	s.round()
	s.round()
	s.wantRows(compared, "public.orders even")
	s.exec(`insert into orders_2 values (150), (151)`)
	s.round()
	s.wantRows(`select concat_ws(' ', counted, others) from tidemark.capture_gap where resolved_at is null`, "2 0")
}

// A captured table that was renamed, moved, or put behind a view of its name makes no events: that is a cause.
func TestCaptureOfATableThatMoved(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s := open(t, db, "app")
	s.exec(`select tidemark.stage_set('live', 'test'); create schema "Else"; create table orders (id int primary key, n int)`)
	s.capture("orders")
	code := one[string](s, `select route_code from tidemark.inbound_route where sql_event = 'insert'`)
	const broken = `select concat_ws(' ', status, subject, split_part(found, ': ', 2)) from tidemark.cause where cause = 'capture_broken' and found like '%no insert%'`
	s.wantRows(broken)
	for _, c := range []struct{ moves, now, more string }{
		{`alter table orders rename to orders_2`, "public.orders_2", ""},
		{`alter table orders set schema "Else"`, `"Else".orders`, ""},
		{`alter table orders set schema "Else"; alter table "Else".orders rename to "Or"`, `"Else"."Or"`, ""},
		{`alter table orders rename to orders_2; create view orders as select * from orders_2`, "public.orders_2", ", and public.orders is another object"},
	} {
		s.begin()
		s.exec(c.moves)
		s.exec(`insert into ` + c.now + ` values (1)`)
		for _, role := range []string{"postgres", "tidemark_reader"} {
			s.exec(`set local role ` + role)
			s.wantRows(broken, "bad "+code+" its table is now "+c.now+c.more+", and no insert of it becomes an event")
		}
		s.exec(`set local role postgres`)
		// The commands mend it: it has its name again, or the route follows it.
		s.exec(one[string](s, `select array_to_string(sql, ' ') from tidemark.cause where cause = 'capture_broken' and subject = $1`, code))
		s.wantRows(broken)
		s.exec(`insert into orders values (1000)`)
		s.wantRows(`select subject_ref from tidemark.outbox`, "1000")
		s.rollback()
	}
	// A route that is off, or a table that is gone, is no such cause.
	s.exec(`alter table orders rename to orders_2; update tidemark.inbound_route set enabled = false`)
	s.wantRows(`select cause from tidemark.cause where cause like 'capture%'`)
	s.exec(`update tidemark.inbound_route set enabled = true; drop table orders_2`)
	s.wantRows(`select cause from tidemark.cause where cause like 'capture%'`)
}

// The counts of a table that has another name for a while stay, so that what it missed is found once it has its name back.
func TestCaptureRecountOfATableThatMoved(t *testing.T) {
	t.Parallel()
	s, _ := recounted(t, `create table orders (id int primary key, n int)`)
	s.exec(`insert into orders values (1); alter table orders rename to orders_2; insert into orders_2 values (2), (3)`)
	s.round()
	s.wantRows(`select concat_ws(' ', name, status, detail) from tidemark.capture_count`, "public.orders unclear its table has another name now")
	s.recountUntil(`not compared`)
	s.exec(`alter table orders_2 rename to orders`)
	s.wantMissed("public.orders 2 0")
	// The counts that this round compares are from before the table had its name back: they tell nothing, and stay.
	s.exec(`insert into orders values (4)`)
	s.recountUntil(`compared`)
	s.wantRows(compared, "public.orders unclear")
	s.wantRows(gapFindings)
	s.round()
	s.wantRows(gapFindings, "capture_gap public.orders")
	s.wantRows(`select concat_ws(' ', counted, others) from tidemark.capture_gap where resolved_at is null`, "2 0")
	s.wantRows(emitGap, "2 t")
	s.wantRows(`select subject_ref from tidemark.outbox where payload ? 'reconciled' order by 1`, "2", "3")
	s.exec(`drop table orders`)
	s.recount()
	s.wantRows(`select name from tidemark.capture_count`)
}
