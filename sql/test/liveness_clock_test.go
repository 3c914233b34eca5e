package test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// A step of the server's clock is what its clock and a daemon's differ by more than before. A late beat is none.
func TestClockStep(t *testing.T) {
	t.Parallel()
	// How far the server's clock goes between two beats, and the daemon's, in seconds.
	type beat struct {
		server, daemon float64
		instance       string
	}
	for name, c := range map[string]struct {
		beats []beat
		want  []string
	}{
		"none":                       {[]beat{{10, 10, ""}, {10, 10, ""}, {600, 600, ""}}, nil},
		"late beats":                 {[]beat{{38, 10, ""}, {10, 10, ""}, {0, 28, ""}, {10, 10, ""}}, nil},
		"one very late beat":         {[]beat{{130, 10, ""}, {0, 120, ""}, {10, 10, ""}}, nil},
		"forward":                    {[]beat{{3610, 10, ""}, {10, 10, ""}, {10, 10, ""}}, []string{"01:00:00"}},
		"back":                       {[]beat{{-3590, 10, ""}, {10, 10, ""}}, []string{"-01:00:00"}},
		"back, and forward again":    {[]beat{{-3590, 10, ""}, {100, 100, ""}, {3610, 10, ""}, {10, 10, ""}}, []string{"00:00:00"}},
		"slewed":                     {[]beat{{20, 10, ""}, {20, 10, ""}, {20, 10, ""}, {20, 10, ""}, {20, 10, ""}}, nil},
		"another start":              {[]beat{{3610, 10, "b"}, {10, 10, "b"}}, nil},
		"a daemon of before uptimes": {[]beat{{10, -1, ""}, {3610, 3610, ""}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, tidemarktest.NewDB(t), "app")
			up := 1000.0
			beats := func(instance string) {
				payload := fmt.Sprintf(`{"instance": "a%s", "uptime": %g}`, instance, up)
				if up < 0 {
					payload = `{"instance": "a"}`
				}
				s.exec(`select tidemark.heartbeat_daemon('d', 'running', $1)`, payload)
			}
			beats("")
			for _, b := range c.beats {
				// The server's clock cannot be set: its difference from the daemon's changes as if it had been.
				if up += b.daemon; b.daemon < 0 {
					up = b.daemon
				}
				s.exec(`update tidemark.heartbeat set payload = payload
					|| coalesce(jsonb_build_object('clock', (payload ->> 'clock')::numeric - $1::numeric), '{}')
					|| case when payload ? 'clock_next' then jsonb_build_object('clock_next', (payload ->> 'clock_next')::numeric - $1::numeric) else '{}' end`, b.server)
				s.exec(`update tidemark.clock_step set at = at - make_interval(secs => $1)`, b.server)
				beats(b.instance)
				if b.daemon < 0 {
					up = 1000
				}
			}
			s.wantRows(`select step::text from tidemark.clock_step where settled_at is null`, c.want...)
		})
	}
}

// clockBack is refusing, under a lease, after the server's clock went back an hour: event 4 is under way.
func clockBack(t *testing.T, db *tidemarktest.DB) session {
	t.Helper()
	w := refusing(t, db)
	w.exec(`select tidemark.claim('default', 'a', '1 hour')`)
	w.exec(`insert into tidemark.clock_step (at, step, seen_by) values (clock_timestamp(), '-1 hour', 'daemon/d');
		update tidemark.pending set next_attempt_at = clock_timestamp() + interval '90 minutes' where seq = 4`)
	return w
}

const (
	clockSettle = `select coalesce(string_agg(what || ' ' || rows, ', '), 'none') from tidemark.clock_settle('it was stepped')`
	settleFour  = `select tidemark.settle('default', (select lease_epoch from tidemark.heartbeat where executor_id = 'default/outbox/0'), null, '{}',
		array[row(r.id, false, 'sent', null, null, '{[4,5)}', null)::tidemark.result])::text from tidemark.outbound_route r where r.route_code = 'app'`
)

// What a step back holds is counted without reading all that waits.
func TestCauseOfAStepReadsNoGrowingTable(t *testing.T) {
	t.Parallel()
	s := tail(t, tidemarktest.NewDB(t), "clock", "")
	s.exec(receiver)
	s.exec(`insert into tidemark.clock_step (at, step, seen_by) values (clock_timestamp(), '-1 hour', 'daemon/d');
		alter table tidemark.pending set (autovacuum_enabled = off);
		alter table tidemark.pending_row set (autovacuum_enabled = off);
		analyze`) // as if little waited
	const waits = `clock_timestamp() - interval '1 day', clock_timestamp() + case when n <= 5 then interval '90 minutes' else interval '10 minutes' end from generate_series(1, 30000) n`
	s.exec(`insert into tidemark.pending (worker_id, route_id, seq, replay, created_at, next_attempt_at) select 1, 1, n, n % 2 = 0, ` + waits)
	s.exec(`insert into tidemark.pending_row (worker_id, source, shard, item_id, snapshot, last_error, created_at, next_attempt_at)
		select (select id from tidemark.worker where worker = 'w'), 'births', 0, n, '{}', 'x', ` + waits)
	n := s.readsOf("pending, pending_row", func() {
		s.wantRows(`select concat_ws(' ', status, waiting) from tidemark.cause_clock()`, "bad 10")
	})
	if n > 31000 {
		t.Errorf("%d rows are read", n)
	}
	s.exec(`analyze tidemark.pending; analyze tidemark.pending_row`)
	if n := s.readsOf("pending, pending_row", func() { s.exec(`select * from tidemark.cause_clock()`) }); n > 31000 {
		t.Errorf("%d rows are read where the server knows how many wait", n)
	}
}

// A settle finds its rows by their places: the clock is made up for before or after it. What was sent is on record, and not sent again.
func TestClockSettleMovesNothingUnderASettle(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, operator, gate := clockBack(t, db), open(t, db, "operator"), open(t, db, "gate")
	w.rewrite("settle_retried", "continue when cardinality(rows_) = 0;", "continue when cardinality(rows_) = 0; perform pg_advisory_xact_lock_shared(1);")
	gate.exec(`select pg_advisory_lock(1)`)
	settled := later[*string](w, settleFour)
	gate.waitsFor(w)
	// A caller that does not wait as long has changed nothing, and can call again.
	operator.exec(`set lock_timeout = '100ms'`)
	operator.refused("55P03", "a pass of default/outbox/0 is under way", clockSettle)
	gate.exec(`select pg_advisory_unlock(1)`)
	if _, err := settled(); err != nil {
		t.Fatal(err)
	}
	w.wantRows(`select concat_ws(' ', attempt_no, outcome) from tidemark.attempt where seq = 4 and attempt_no > 1`, "2 sent")
	operator.exec(`reset lock_timeout`)
	operator.wantRows(clockSettle, "jobs 0, deliveries 0, rows of tables 0, commands 0, heartbeats and leases 0")
	w.wantRows(waits, "1 parked, 2 behind, 3 behind")
}

// A pass locks its lease, then what is pending; so does the operator who makes up for the clock.
func TestClockSettleBesideAPass(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, operator, eye := clockBack(t, db), open(t, db, "operator"), open(t, db, "eye")
	w.exec(`update tidemark.heartbeat set last_beat_at = clock_timestamp() + interval '1 hour' where executor_id = 'default/outbox/0'`)
	w.begin()
	w.exec(`select tidemark.lease_check('default', (select lease_epoch from tidemark.heartbeat where executor_id = 'default/outbox/0'))`)
	operator.exec(`set lock_timeout = '5min'`)
	made := later[string](operator, clockSettle)
	eye.waitsFor(operator)
	w.exec(settleFour)
	w.commit()
	if got, err := made(); err != nil || got != "jobs 0, deliveries 0, rows of tables 0, commands 0, heartbeats and leases 1" {
		t.Errorf("%q, %v", got, err)
	}
}

// A pass over a table can take minutes: the operator is told to come again, and has not kept the beats of others waiting until their leases end.
func TestClockSettleGivesUpBehindALongPass(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, operator, pass, eye := clockBack(t, db), open(t, db, "operator"), open(t, db, "pass"), open(t, db, "eye")
	w.exec(numberedSource)
	w.exec(`select tidemark.worker_set('tables', '{"source": "table", "handler": "emit", "handler_ref": "test/tick"}')`)
	w.exec(`select tidemark.worker_source_add('tables', 't')`)
	pass.begin()
	pass.exec(`select from tidemark.heartbeat where executor_id = 'tables/t/0' for update`)
	operator.exec(`set statement_timeout = '1min'`)
	settled := later[string](operator, clockSettle)
	eye.waitsFor(operator)
	beaten := later[string](w, `select coalesce(b.gate, 'open') from tidemark.beat('default',
		(select lease_epoch from tidemark.heartbeat where executor_id = 'default/outbox/0'), '1 hour') b`)
	eye.waitsFor(w)
	_, err := settled()
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "55P03" || refused.Message != "a pass of tables/t/0 is under way" ||
		!strings.Contains(refused.Hint, "call it again") {
		t.Errorf("got %v", err)
	}
	if gate, err := beaten(); err != nil || gate != "open" {
		t.Errorf("%q, %v", gate, err)
	}
	pass.rollback()
	operator.wantRows(`show lock_timeout`, "0")
	operator.exec(`set lock_timeout = '5min'`)
	operator.wantRows(clockSettle, "jobs 0, deliveries 1, rows of tables 0, commands 0, heartbeats and leases 0")
}

// After the clock went back, an instance that was killed by the old one takes no shard from those that live; one that waits says so again.
func TestClockBackAndShares(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.shards(2)
	const share = `select share::text from tidemark.shard_share('default', 'A')`
	w.exec(`select tidemark.claim('default', 'A', '10 seconds')`)
	w.wantRows(share, "2")
	// Killed an hour before: the clock went back two.
	w.exec(`insert into tidemark.worker_instance (worker, owner, seen_at, seen_until) values ('default', 'dead', now() + interval '60 minutes', now() + interval '61 minutes'),
		('default', 'B', now() + interval '120 minutes', now() + interval '121 minutes')`)
	w.wantRows(share, "2")
	w.exec(`select from tidemark.poll('B', '10 seconds', '{default}', '{outbox}', '{1}', '{null}')`)
	w.wantRows(share, "1")
	w.wantRows(`select owner from tidemark.worker_instance where seen_until < now() + interval '1 minute' order by 1`, "A", "B")
	w.exec(`update tidemark.worker_instance set seen_at = now() + interval '1 hour', seen_until = now() + interval '2 hours' where owner = 'A'`)
	w.exec(`select tidemark.claim('default', 'A', '10 seconds')`)
	w.wantRows(`select (seen_at < clock_timestamp())::text from tidemark.worker_instance where owner = 'A'`, "true")
}

// Replays, and jobs of dead letters, are due as they would have been.
func TestClockSettleOfJobs(t *testing.T) {
	t.Parallel()
	w := manyLetters(t, tidemarktest.NewDB(t))
	w.exec(`truncate poison`)
	w.exec(`select tidemark.route_replay('app', 'again', from_seq => 1, to_seq => 3), tidemark.route_replay('app', 'slowly', from_seq => 4, to_seq => 6, rate => 0.001)`)
	w.exec(`select tidemark.letter_job_add('replay', 'fixed', 'app', error_code => 'P0001'), tidemark.letter_job_add('discard', 'not wanted', 'app', error_code => 'P0002')`)
	// The clock goes back two hours.
	w.exec(`insert into tidemark.clock_step (at, step, seen_by) values (clock_timestamp(), '-2 hours', 'daemon/d');
		update tidemark.replay_job set due_at = due_at + case when rate is null then interval '1 hour' else '2 hours 10 minutes' end;
		update tidemark.letter_job set due_at = due_at + interval '1 hour', requested_at = requested_at + interval '2 hours';
		update tidemark.dead_letter set first_failed_at = first_failed_at + interval '100 minutes', last_failed_at = last_failed_at + interval '110 minutes'`)
	w.wantRows(`select concat_ws(' ', status, waiting) from tidemark.cause_clock()`, "bad 4")
	const step = `select coalesce(tidemark.letter_job_step()::text, 'nothing is due')`
	w.wantRows(step, "nothing is due")
	w.wantRows(`select coalesce(tidemark.log_next('default'), 'nothing')`, "nothing")
	w.wantRows(clockSettle, "jobs 4, deliveries 0, rows of tables 0, commands 0, heartbeats and leases 0")
	w.wantRows(`select count(*)::text from tidemark.cause_clock()`, "0")
	w.wantRows(`select tidemark.log_next('default')`, "replay")
	w.wantRows(`select round(extract(epoch from due_at - clock_timestamp()) / 60)::text from tidemark.replay_job order by id`, "0", "10")
	w.pass()
	w.wantRows(`select concat_ws(' ', passed_seq, last_seq) from tidemark.replay_job where rate is null`, "3 3")
	for range 6 {
		w.exec(step)
	}
	w.wantRows(`select concat_ws(' ', action, state, done) from tidemark.letter_job_summary order by id`, "replay finished 200", "discard finished 50")
}

// A job takes the letters that failed by the clock of before it was set back.
func TestClockBackAndLetters(t *testing.T) {
	t.Parallel()
	w := manyLetters(t, tidemarktest.NewDB(t))
	w.exec(`update tidemark.dead_letter set first_failed_at = first_failed_at + interval '1 hour', last_failed_at = last_failed_at + interval '1 hour' where seq > 10`)
	w.exec(`truncate poison`)
	for _, dry := range []bool{true, false} {
		w.wantRows(fmt.Sprintf(`select letters::text from tidemark.letter_job_add('discard', 'why', 'app', error_code => 'P0002', dry_run => %t)`, dry), "50")
	}
	w.exec(`select tidemark.letter_job_add('replay', 'why', 'app')`)
	for range 6 {
		w.exec(`select tidemark.letter_job_step()`)
	}
	w.wantRows(`select concat_ws(' ', action, state, done, letters) from tidemark.letter_job_summary order by id`, "discard finished 50 50", "replay finished 200 250")
	w.wantRows(`select count(*)::text from tidemark.dead_letter where resolved_at is null or first_failed_at > last_failed_at or last_failed_at > clock_timestamp()`, "0")
}

// What a replay stages before the operator has come is due at once, and not an hour ahead, where nothing would find it.
func TestClockBackAndAReplay(t *testing.T) {
	t.Parallel()
	w := past(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.route_replay('app', 'again', from_seq => 1)`)
	w.exec(`update tidemark.replay_job set due_at = due_at + interval '1 hour'`)
	w.pass()
	w.wantRows(`select count(*)::text from tidemark.pending where next_attempt_at > clock_timestamp() + interval '1 minute'`, "0")
	w.wantRows(`select (staged > 0 and due_at < clock_timestamp() + interval '1 minute')::text from tidemark.replay_job`, "true")
}

// A retry of a command locks its row without a lease: the operator waits for it as long as for a pass, and nothing has changed.
func TestClockSettleGivesUpBehindALockedRow(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, other, eye := clockBack(t, db), open(t, db, "other"), open(t, db, "eye")
	other.begin()
	other.exec(`select from tidemark.pending where seq = 4 for update`)
	w.exec(`set statement_timeout = '1min'`)
	settled := later[string](w, clockSettle)
	eye.waitsFor(w)
	_, err := settled()
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "55P03" || refused.Message != "deliveries, commands or jobs that wait are locked by another session" {
		t.Errorf("got %v", err)
	}
	w.wantRows(`show lock_timeout`, "0")
	other.rollback()
	w.wantRows(clockSettle, "jobs 0, deliveries 1, rows of tables 0, commands 0, heartbeats and leases 0")
	w.wantRows(`show lock_timeout`, "0")
}

// A daemon that begins again after the clock went back has a new name: it watches, and does not wait for the one that it was.
func TestClockBackAndTheWatch(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "watch")
	s.exec(watched)
	const other = `select count(*) filter (where state = 'held') from tidemark.watch('courier/2', false)`
	s.wantRows(`select (`+other+`)::text`, "1")
	s.exec(`update tidemark.watcher set until = until + interval '2 hours'`)
	s.wantRows(`select (`+other+`)::text`, "0")
	s.wantRows(`select concat_ws(' ', name, until < clock_timestamp() + interval '21 seconds') from tidemark.watcher`, "courier/2 t")
}

// An excuse of before the clock went back excuses nothing.
func TestClockBackAndSilence(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "check")
	s.register("x")
	s.silentFor("x", 400)
	s.exec(`update tidemark.silence set excused_at = clock_timestamp() + interval '1 hour' where executor_id = 'x'`)
	s.check("x silent critical told")
}
