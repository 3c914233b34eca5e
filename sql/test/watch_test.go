package test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

const (
	watched = `select concat_ws(' ', state, status, cause, subject) from tidemark.watch('courier/1', false)`
	told    = `select concat_ws(' ', o.type, o.severity, o.payload ->> 'cause', o.payload ->> 'subject') from tidemark.outbox o
		where o.domain = 'system' and o.type like 'finding%' order by o.seq`
	tellFindings = `select tidemark.type_set('system', 'finding_opened', '{"enabled": true}'), tidemark.type_set('system', 'finding_closed', '{"enabled": true}')`
)

// later lets the time pass in which what is gone may come back without being told again.
func (s session) later() {
	s.exec(`update tidemark.finding set last_seen_at = last_seen_at - interval '31 seconds', closed_at = closed_at - interval '31 seconds'`)
}

// second lets the time pass after which a warning is told.
func (s session) second() {
	s.exec(`update tidemark.finding set opened_at = opened_at - interval '6 seconds'`)
}

// LI8: a cause has one history: it is told when it begins and when it is over, whether a part reports it as a finding or not.
func TestWatch(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "watch")
	s.exec(tellFindings)
	s.wantRows(watched)
	s.exec(`select tidemark.emit('shop', 'ordr')`)
	s.wantRows(watched, "open warn emit_unregistered emit")
	s.wantRows(told) // it may be over at once
	s.second()
	s.wantRows(watched, "opened warn emit_unregistered emit")
	s.wantRows(watched, "open warn emit_unregistered emit")
	s.wantRows(`select finding::text from tidemark.cause`, "1")
	s.wantRows(`select count(*)::text from tidemark.queue_health where kind = 'finding'`, "0")
	s.exec(`select tidemark.finding_ack(1, 'ada looks')`)
	s.wantRows(`select (found like '%; acknowledged by postgres: ada looks')::text from tidemark.cause`, "true")

	// maintain reports the same, and it remains one.
	s.exec(`select tidemark.maintain()`)
	s.wantRows(watched, "open warn emit_unregistered emit")
	s.wantRows(`select concat_ws(' ', id, kind, derived, told, closed_at is null) from tidemark.finding`, "1 emit_unregistered f opened t")

	// It is over, and comes back at once.
	s.exec(`select tidemark.type_set('shop', 'ordr')`)
	s.exec(`select tidemark.maintain()`)
	s.wantRows(watched)
	s.exec(`select tidemark.emit('shop', 'odrer')`)
	s.wantRows(watched, "open warn emit_unregistered emit")
	s.wantRows(told, "finding_opened warning emit_unregistered emit")
	s.exec(`select tidemark.type_set('shop', 'odrer')`)
	s.wantRows(watched)
	s.later()
	s.wantRows(watched, "closed emit_unregistered emit")
	s.wantRows(watched)
	s.wantRows(told, "finding_opened warning emit_unregistered emit", "finding_closed warning emit_unregistered emit")
	s.wantRows(`select count(*)::text from tidemark.finding where closed_at is null or told <> 'closed'`, "0")
}

// What a finding is called in tidemark.finding and what its cause is called may differ: it is one all the same.
func TestWatchOfALag(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.pass()
	w.exec(tellFindings)
	w.emit(1)
	w.exec(`set session_replication_role = replica`)
	w.exec(`update tidemark.outbox set created_at = now() - interval '2 minutes'`)
	w.exec(`reset session_replication_role`)
	w.exec(watched)
	w.second()
	w.wantRows(watched, "opened warn worker_behind default/outbox/0")
	w.exec(`select tidemark.maintain()`)
	w.wantRows(watched, "open warn worker_behind default/outbox/0")
	w.wantRows(`select kind || ' ' || derived from tidemark.finding where closed_at is null`, "cursor_lag false")
	w.pass()
	w.exec(`select tidemark.maintain()`)
	w.later()
	w.wantRows(watched, "closed worker_behind default/outbox/0")
	w.wantRows(told, "finding_opened warning worker_behind default/outbox/0", "finding_closed warning worker_behind default/outbox/0")
}

// A symptom is told only where it is no symptom any more.
func TestWatchTellsNoSymptom(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "watch")
	s.exec(tellFindings)
	s.exec(`select tidemark.heartbeat_daemon('courier')`)
	s.exec(`update tidemark.heartbeat set last_beat_at = now() - interval '31 seconds' where executor_id = 'daemon/courier'`)
	s.exec(`select tidemark.stale_check()`)
	s.wantRows(`select kind from tidemark.finding`, "heartbeat_silent")
	s.wantRows(watched, "opened bad daemon_dead daemon/courier")
	s.wantRows(told, "finding_opened high daemon_dead daemon/courier")
	s.exec(`select tidemark.heartbeat_daemon('courier')`)
	s.exec(`select tidemark.stale_check()`)
	s.later()
	s.wantRows(watched, "closed daemon_dead daemon/courier")
}

// What remains of a symptom, when its cause is over, is no cause.
func TestWatchTellsNoSymptomAfterItsCause(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.pass()
	w.emit(1)
	w.exec(`set session_replication_role = replica`)
	w.exec(`update tidemark.outbox set created_at = now() - interval '2 minutes'`)
	w.exec(`reset session_replication_role`)
	w.exec(`select tidemark.maintain()`)
	w.exec(`insert into tidemark.dead_letter (idempotency_key, worker_id, route_id, seq, event_id, event_snapshot, error_code)
		select 'k', r.worker_id, r.id, 1, gen_random_uuid(), '{}', 'x' from (select o.id, w.id as worker_id from tidemark.outbound_route o join tidemark.worker w on w.worker = o.worker) r limit 1`)
	w.exec(`select tidemark.dead_letter_findings('default', 1, 'default', 1)`)
	w.wantRows(`select kind from tidemark.finding order by kind`, "cursor_dlq", "cursor_lag")
	w.pass()
	w.exec(`select tidemark.dead_letter_discard(1, 'test')`)
	w.wantRows(watched)
	w.wantRows(`select kind from tidemark.finding where closed_at is null`)
}

// While an operator makes an index on the log, say, no event can be emitted. It is later, each once and in order; all else goes on.
func TestWatchTellsOfALockedLogLater(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	a, b := open(t, db, "a"), open(t, db, "b")
	b.exec(tellFindings)
	b.exec(`select tidemark.finding_open('target_down', 'one', 'high', 'x'), tidemark.finding_open('target_down', 'two', 'high', 'x')`)
	a.begin()
	a.exec(`lock tidemark.outbox in share mode`)
	const look = `select concat_ws(' ', state, subject) from tidemark.watch('courier/1', false) where cause = 'target_down' order by 1`
	b.wantRows(look, "opened one", "opened two")
	b.wantRows(look, "open one", "open two")
	b.exec(`select tidemark.finding_close('target_down', 'one')`)
	b.later()
	b.wantRows(look, "closed one", "open two")
	a.commit()
	b.wantRows(told)
	for range 2 {
		b.wantRows(look, "open two")
		b.wantRows(told, "finding_opened high target_down one", "finding_closed high target_down one", "finding_opened high target_down two")
	}
	b.wantRows(`select count(*)::text from tidemark.finding where untold is not null`, "0")
}

// Of any number of daemons and sessions one watches.
func TestWatchOneAtATime(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	a, b := open(t, db, "a"), open(t, db, "b")
	a.exec(`select tidemark.emit('shop', 'ordr')`)
	const fromPsql = `select concat_ws(' ', state, status, cause, subject) from tidemark.watch() where state <> 'upkeep'`
	a.exec(fromPsql)
	a.second()
	a.begin()
	a.wantRows(fromPsql, "opened warn emit_unregistered emit")
	b.wantRows(watched, fmt.Sprintf("held session %d of postgres", a.conn.PgConn().PID())) // and does not wait
	a.commit()
	a.wantRows(fromPsql, "open warn emit_unregistered emit") // a session keeps nothing
	b.wantRows(watched, "open warn emit_unregistered emit")
	a.wantRows(fromPsql, "open warn emit_unregistered emit", "held courier/1")
	a.wantRows(`select count(*)::text from tidemark.watch() where state = 'upkeep'`, "0")
	b.exec(`update tidemark.watcher set until = now()`) // it died
	a.wantRows(fromPsql, "open warn emit_unregistered emit")
	a.begin()
	a.exec(`set transaction isolation level repeatable read`)
	a.refused("TM006", "watch cannot run", `select tidemark.watch()`)
}

// Where no daemon runs, a call from psql does all that one does: here the check for silence, and upkeep.
func TestWatchWithoutADaemon(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "watch")
	s.exec(`select tidemark.heartbeat_register('x', cadence => '1 second')`)
	s.exec(`update tidemark.heartbeat set watched_since = watched_since - interval '1 hour' where executor_id = 'x'`)
	s.exec(`update tidemark.setting set value = '3' where key = 'outbox.partitions_ahead'`)
	s.exec(`set role tidemark_executor`)
	s.wantRows(`select concat_ws(' ', state, status, cause, subject) from tidemark.watch()`,
		"opened bad heartbeat_silent x", "upkeep created outbox_p3000000")
	s.exec(`set role tidemark_reader`)
	s.refused("42501", "permission denied", `select tidemark.watch()`)
}

// What the role that watches may not see is unknown, and not well.
func TestWatchWithoutRights(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "clock", "")
	s.exec(insertAt("now() - interval '480 hours'"))
	s.drain()
	s.wantRows(watched)
	s.exec(`revoke all on births from tidemark_executor, tidemark_reader; update tidemark.source_unread set noted_at = noted_at - interval '16 minutes'`)
	s.exec(`set role tidemark_executor`)
	s.wantRows(watched, "open unknown worker_behind w/births/0")
}

// Each dead letter is given out once, and again when it opened anew. What it quotes of a payload is nowhere.
func TestWatchOfDeadLetters(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w := live(t, db)
	other := open(t, db, "other")
	w.exec(tellFindings)
	w.exec(`create or replace function public.take(event jsonb) returns void language plpgsql as $$ begin raise 'not %', event ->> 'payload'; end $$`)
	w.exec(`select tidemark.route_set('poison', '{"domain": "shop", "target_kind": "sql", "target_ref": "public.take", "enabled": true, "dry_run": false, "retry_policy": {"max_attempts": 1}}')`)
	w.exec(`select tidemark.type_set('shop', 'order.paid')`)
	w.exec(`select tidemark.emit('shop', 'order.paid', payload => '{"card": "4111"}', trace => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01')`)
	w.pass()
	const unlogged = `select concat_ws(' ', route, worker, code, attempts, event_id is not null, trace) from tidemark.letters_unlogged(1000)`
	w.begin()
	w.wantRows(unlogged, "poison default P0001 1 t 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	other.wantRows(unlogged) // and does not wait
	w.commit()
	w.wantRows(unlogged)
	w.exec(`select tidemark.dead_letter_replay(1)`)
	w.pass()
	w.wantRows(unlogged) // it was never resolved
	w.exec(`set role tidemark_executor`)
	w.wantRows(`select (found like '%4111%')::text from tidemark.cause where cause = 'dead_letters'`, "true")
	w.wantRows(watched, "open warn dead_letters poison")
	w.exec(`reset role`)
	w.second()
	w.exec(`set role tidemark_executor`)
	w.wantRows(watched, "opened warn dead_letters poison")
	w.exec(`reset role`)
	for _, text := range column[string](w, `select f::text from tidemark.finding f union all select o.payload::text from tidemark.outbox o where o.domain = 'system'`) {
		if strings.Contains(text, "4111") {
			t.Errorf("it quotes the payload: %s", text)
		}
	}
}

// looks calls the watch until it shows this row, and returns all rows of that look.
func (s session) looks(row string) []string {
	s.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for tick := time.NewTicker(100 * time.Millisecond); ; <-tick.C {
		rows := column[string](s, watched)
		if slices.Contains(rows, row) {
			return rows
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the watch does not show %q, but %q", row, rows)
		}
	}
}

// While the log is locked, the watch tells who has locked it. What else was wrong is not over.
func TestWatchOfALockedLog(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, other := open(t, db, "watch"), open(t, db, "other")
	s.exec(`select tidemark.emit('shop', 'ordr')`)
	s.exec(watched)
	s.second()
	s.wantRows(watched, "opened warn emit_unregistered emit")
	other.begin()
	other.exec(`lock table tidemark.outbox in access exclusive mode`)
	locked := fmt.Sprintf("bad tables_locked pid %d", other.conn.PgConn().PID())
	if rows := s.looks("opened " + locked); len(rows) != 1 {
		t.Errorf("beside the lock it sees %q", rows)
	}
	s.later()
	s.wantRows(watched, "open "+locked)
	s.wantRows(`select kind from tidemark.finding where closed_at is null order by 1`, "emit_unregistered", "tables_locked")
	other.rollback()
	s.wantRows(watched, "open warn emit_unregistered emit")
	s.later()
	s.wantRows(watched, "open warn emit_unregistered emit", fmt.Sprintf("closed tables_locked pid %d", other.conn.PgConn().PID()))
	// A lock against writers is trouble too, though readers do not notice. It may be younger than its transaction.
	other.begin()
	begun := one[time.Time](other, `select clock_timestamp()`)
	other.exec(`lock table tidemark.setting in share mode`)
	s.wantRows(fmt.Sprintf(`select (since > '%s')::text from tidemark.cause_locks()`, begun.Format(time.RFC3339Nano)), "true")
	if rows := s.looks("opened " + locked); len(rows) != 2 || rows[1] != "open warn emit_unregistered emit" {
		t.Errorf("beside the lock it sees %q", rows)
	}
}

// Of a session whose times the server does not show, a lock that lasts is told with its pid, and is bad once others have waited for it.
func TestWatchOfAHiddenLock(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	s, other, writer := open(t, db, "watch"), open(t, db, "other"), open(t, db, "writer")
	s.exec(`select tidemark.type_set('shop', 'order')`)
	other.exec(`set track_activities = off`)
	other.begin()
	other.exec(`lock table tidemark.outbox in access exclusive mode`)
	locked := fmt.Sprintf("tables_locked pid %d", other.conn.PgConn().PID())
	s.wantRows(watched, "open unknown "+locked)
	s.second()
	s.wantRows(watched, "opened unknown "+locked)
	s.wantRows(`select concat_ws(' ', sql, found like '%has locked outbox%; its times are not shown to tidemark_owner; what else%') from tidemark.cause`,
		`{"grant pg_read_all_stats to tidemark_owner;"} t`)
	done := make(chan struct{})
	go func() { _, _ = writer.conn.Exec(t.Context(), `select tidemark.emit('shop', 'order')`); close(done) }()
	s.waitsFor(writer)
	s.looks("open bad " + locked)
	s.wantRows(`select concat_ws(' ', sql, found like '%has locked outbox% for 00:00:%; its times are not shown to tidemark_owner; what else%') from tidemark.cause`,
		fmt.Sprintf(`{"select pg_terminate_backend(%d);"} t`, other.conn.PgConn().PID()))
	other.rollback()
	<-done
}
