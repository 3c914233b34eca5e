package test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

const (
	// replays shows what route_replay counted: what goes, then what is left out, then the sum.
	replays = `select concat_ws(' ', former, left_out, events) from tidemark.route_replay(`
	// jobs shows how far the replays have come.
	replayJobs = `select concat_ws(' ', id, state, waits_for, passed_seq, staged, sent, failed, left_out) from tidemark.replay_summary order by id`
)

// past has sent events 1 to 3 on the route app, was off for 4 and 5, in dry run for 6 and 7, and live for 8.
func past(t *testing.T, db *tidemarktest.DB) session {
	t.Helper()
	w := poisoned(t, db)
	n := 0
	for _, phase := range []struct {
		events int
		change string
	}{
		{3, `{}`}, {2, `{"enabled": false}`}, {2, `{"enabled": true, "dry_run": true}`}, {1, `{"dry_run": false}`},
	} {
		w.exec(`select tidemark.route_set('app', $1::text::jsonb)`, phase.change)
		for range phase.events {
			n++
			w.emitKey(n, "k")
		}
		w.pass()
	}
	w.wantReceived(1, 2, 3, 8)
	w.exec(`truncate received`)
	return w
}

// RO10: what a route was sent, off, or in dry run for goes again, in order, as new attempts, counted first.
func TestRouteReplay(t *testing.T) {
	t.Parallel()
	w := past(t, tidemarktest.NewDB(t))
	counts := []string{"disabled 2", "dry_run 2", "sent 4", "8"}
	w.wantRows(replays+`'app', from_seq => 1, dry_run => true)`, counts...)
	w.wantRows(replayJobs)
	w.wantRows(replays+`'app', 'they lost it', from_seq => 1)`, counts...)
	w.wantRows(replayJobs, "1 running 0 0 0 0 {}")
	w.wantReceived() // nothing but passes delivers
	w.emit(9)
	w.pass()
	w.wantReceived(1, 2, 3, 4, 5, 6, 7, 8, 9)
	w.wantRows(replayJobs, "1 finished 8 8 8 0 {}")
	w.wantRows(`select concat_ws(' ', seq, attempt_no, outcome, reason) from tidemark.route_attempt where seq in (1, 5, 9) order by seq, attempt_no`,
		"1 1 sent", "1 2 pending replay", "1 3 sent", "5 1 disabled", "5 2 pending replay", "5 3 sent", "9 1 sent")
	w.wantRows(`select concat_ws(' ', actor = session_user, object, reason, after ->> 'first_seq', after ->> 'last_seq') from tidemark.audit where action = 'route_replay'`,
		"t route app they lost it 1 8")
	w.pass()
	w.wantSound()
	// A rewind counts each once, by what became of it last.
	w.wantRows(`select concat_ws(' ', outcome, events, decided) from tidemark.rewind_outlook('default', 0) where route_code = 'app'`, "sent 9 t")

	// And once more, of some.
	w.exec(`truncate received`)
	w.wantRows(replays+`'app', 'why', from_seq => 2, to_seq => 6, outcomes => '{sent}')`, "sent 5", "5")
	w.pass()
	w.wantReceived(2, 3, 4, 5, 6)
	w.wantRows(`select max(attempt_no)::text from tidemark.route_attempt where seq = 2`, "5")
	w.wantSound()
}

// Chosen by time, key and what became of it.
func TestRouteReplayChooses(t *testing.T) {
	t.Parallel()
	w := past(t, tidemarktest.NewDB(t))
	w.emitKey(9, "other")
	w.pass()
	at := func(seq string) string { return `(select created_at from tidemark.outbox where seq = ` + seq + `)` }
	for arguments, want := range map[string][]string{
		`since => ` + at("5"):                                             {"disabled 1", "dry_run 2", "sent 2", "5"},
		`since => ` + at("5") + `, until => ` + at("7"):                   {"disabled 1", "dry_run 1", "2"},
		`since => 'infinity'`:                                             {"0"},
		`from_seq => 7, key => 'other'`:                                   {"sent 1", "1"},
		`from_seq => 1, outcomes => '{disabled,dry_run}'`:                 {"disabled 2", "dry_run 2", "sent outcome 5", "4"},
		`from_seq => 1, to_seq => 99999`:                                  {"disabled 2", "dry_run 2", "sent 5", "9"},
		`from_seq => 10`:                                                  {"0"},
		`from_seq => 1, outcomes => '{none}', key => 'other', rate => 10`: {"sent outcome 1", "0"},
	} {
		w.wantRows(replays+`'app', dry_run => true, `+arguments+`)`, want...)
	}
	for arguments, want := range map[string]string{
		`'nope', 'why', from_seq => 1`:                             "there is no route",
		`'app', ' ', from_seq => 1`:                                "needs a reason",
		`'app', 'why'`:                                             "one beginning",
		`'app', 'why', from_seq => 1, since => now()`:              "one beginning",
		`'app', 'why', from_seq => 1, rate => 0`:                   "must be from 0.001 to 1000000",
		`'app', 'why', from_seq => 1, outcomes => '{lost}'`:        "choose from sent",
		`'app', 'why', from_seq => 1, to_seq => 2, until => now()`: "at most one end",
	} {
		code := "TM005"
		if want == "there is no route" {
			code = "TM004"
		}
		w.refused(code, want, `select tidemark.route_replay(`+arguments+`)`)
	}
	w.wantRows(replayJobs)
}

// An operator may delete a route, or give it to another worker, while another counts its events for a replay. The replay is refused then:
// no pass would take it up, and it would keep the log. Once the replay is made, the deletion and the move are refused.
func TestRouteReplayBesideTheEndOfTheRoute(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ act, code, text string }{
		"deleted": {`select tidemark.route_delete('app', 'why')::text`, "TM004", `route "app" was deleted meanwhile`},
		"moved":   {`select worker from tidemark.route_set('app', '{"worker": "other"}')`, "TM005", `route "app" was given to worker other meanwhile`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			w, operator, gate := past(t, db), open(t, db, "operator"), open(t, db, "gate")
			w.exec(`select tidemark.worker_set('other'), tidemark.gate_set('worker.other.enabled', true), tidemark.route_set('app', '{"enabled": false}')`)
			w.pass()
			w.passOther()
			const asks = `select max(id)::text from tidemark.route_replay('app', 'why', from_seq => 1)`

			w.begin()
			equal(t, "replay", one[string](w, asks), "1")
			acted := later[*string](operator, c.act)
			gate.waitsFor(operator)
			w.commit()
			var refused *pgconn.PgError
			if _, err := acted(); !errors.As(err, &refused) || refused.Code != "TM005" || !strings.Contains(refused.Message, "replay 1 of it is not over") {
				t.Errorf("got %v", err)
			}
			w.exec(`select tidemark.replay_cancel(1, 'why')`)

			w.rewrite("route_replay", "complete := at >= high;", "complete := at >= high; perform pg_advisory_xact_lock_shared(1);")
			gate.exec(`select pg_advisory_lock(1)`)
			asked := later[string](w, asks)
			gate.waitsFor(w)
			operator.exec(c.act)
			gate.exec(`select pg_advisory_unlock(1)`)
			if _, err := asked(); !errors.As(err, &refused) || refused.Code != c.code || refused.Message != c.text {
				t.Errorf("got %v", err)
			}
			w.wantRows(`select count(*)::text from tidemark.replay_job where finished_at is null`, "0")
		})
	}
}

// A new route gets what was before it; what it does not claim is none of its business.
func TestRouteReplayIsTheBackfill(t *testing.T) {
	t.Parallel()
	w := past(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.type_set('test', 'tock'); select tidemark.emit('test', 'tock', '{"n": 9}'); select tidemark.route_set('app', '{"enabled": false}')`)
	w.pass()
	w.exec(`select tidemark.route_set('new', '{"domain": "test", "type": "tick", "target_kind": "sql", "target_ref": "public.receive", "enabled": true, "dry_run": false}')`)
	w.wantRows(replays+`'new', 'from the first', from_seq => 1)`, "none 8", "8")
	w.pass()
	w.pass()
	w.wantReceived(1, 2, 3, 4, 5, 6, 7, 8)
	w.wantRows(`select concat_ws(' ', attempt_no, outcome, count(*)) from tidemark.route_attempt where route_code = 'new' group by attempt_no, outcome order by 1`,
		"1 pending 8", "2 sent 8")
	// It is on record: a rewind does not deliver it again.
	w.exec(`select tidemark.worker_rewind('default', 0, 'drill')`)
	w.pass()
	equal(t, "received", len(w.received()), 8)
	w.wantSound()
}

// What is left out, and why.
func TestRouteReplayLeavesOut(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, a := poisoned(t, db), open(t, db, "a")
	a.begin()
	a.emit(1)     // a hole
	w.emitMany(6) // 2 to 7
	w.exec(`update received set n = 0 where false; insert into poison values (1, 'P0001'), (2, 'P0001')`)
	w.pass() // numbers 2 and 3 fail
	w.exec(`select tidemark.dead_letter_discard((select id from tidemark.dead_letter where seq = 3), 'not needed')`)
	w.exec(`select tidemark.route_set('app', '{"payload_filter": {"n": 3}}')`)
	w.wantRows(replays+`'app', dry_run => true, from_seq => 1)`, "sent 1", "failed no_match 2", "sent no_match 3", "1")
	w.exec(`select tidemark.route_set('app', '{"payload_filter": null}')`)
	w.wantRows(replays+`'app', 'why', from_seq => 1)`, "sent 4", "failed dead_letter 1", "failed discarded 1", "4")
	a.commit()
	w.wantRows(replays+`'app', dry_run => true, from_seq => 1)`, "sent 4", "failed dead_letter 1", "failed discarded 1", "none open 1", "4")
	w.exec(`truncate received; delete from poison`)
	w.pass()
	w.wantReceived(3, 4, 5, 6, 1)
	w.wantRows(replayJobs, `1 finished 7 4 4 0 {"open": 1, "discarded": 1, "dead_letter": 1}`)

	// Pending to the outside is left out, and goes.
	w.exec(`select tidemark.route_set('app', '{"target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}}')`)
	w.emit(8)
	w.pass()
	w.wantRows(replays+`'app', dry_run => true, from_seq => 8)`, "pending pending 1", "0")
	w.wantSound()
}

// It holds while a gate, the route or the stage does, and says so; it goes on where it was.
func TestRouteReplayWaits(t *testing.T) {
	t.Parallel()
	w := past(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.route_replay('app', 'why', from_seq => 1)`)
	for _, c := range []struct{ close, open, waits string }{
		{`select tidemark.gate_set('routes.enabled', false)`, `select tidemark.gate_set('routes.enabled', true)`, "routes.enabled"},
		{`select tidemark.route_set('app', '{"enabled": false}')`, `select tidemark.route_set('app', '{"enabled": true}')`, "the route is off"},
		{`select tidemark.route_set('app', '{"dry_run": true}')`, `select tidemark.route_set('app', '{"dry_run": false}')`, "the route is in dry run"},
		{`update tidemark.stage set database = 'another'`, `update tidemark.stage set database = current_database()`, "stage"},
	} {
		w.exec(c.close)
		w.pass()
		w.wantReceived()
		w.wantRows(replayJobs, "1 waiting "+c.waits+" 0 0 0 0 {}")
		w.exec(c.open)
	}
	// A pass that is taken back takes its step back.
	w.begin()
	w.pass()
	w.rollback()
	w.wantReceived()
	w.wantRows(replayJobs, "1 running 0 0 0 0 {}")
	w.pass()
	w.wantReceived(1, 2, 3, 4, 5, 6, 7, 8)
	w.wantSound()
}

// A replay that does not get on says why: its worker does not run, its target is down, or refuses an event.
func TestRouteReplayIsStuck(t *testing.T) {
	t.Parallel()
	w := past(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.route_set('app', '{"target_kind": "webhook", "target_ref": "https://shop.example/hooks", "options": {"unsigned": true}}'), tidemark.route_replay('app', 'why', from_seq => 1)`)
	const how = `select concat_ws(' ', state, regexp_replace(waits_for, '[0-9]+ s$', 'n s'), sent || '/' || events) from tidemark.replay_summary`
	w.wantRows(how, "running 0/8")
	w.pass()
	w.wantRows(how, "running 0/8")
	for _, c := range []struct{ stuck, mended, says string }{
		{
			`update tidemark.heartbeat set last_beat_at = now() - interval '1 hour' where executor_id = 'default/outbox/0'`,
			`update tidemark.heartbeat set last_beat_at = now() where executor_id = 'default/outbox/0'`, "its worker is silent for n s",
		},
		{
			`update tidemark.heartbeat set last_beat_at = null where executor_id = 'default/outbox/0'`,
			`update tidemark.heartbeat set last_beat_at = now() where executor_id = 'default/outbox/0'`, "its worker was never run",
		},
		{
			`select tidemark.finding_open('target_down', 'app', 'high', 'it is')`, `select tidemark.finding_close('target_down', 'app')`,
			"its target is down",
		},
		{
			`update tidemark.pending set error_count = 3 where seq in (2, 5)`, `update tidemark.pending set error_count = 0`,
			"event 2 failed 3 times, and is tried again",
		},
	} {
		w.exec(c.stuck)
		w.wantRows(how, "waiting "+c.says+" 0/8")
		w.exec(c.mended)
		w.wantRows(how, "running 0/8")
	}
}

// A rate is kept by the times at which the staged events are due, a few seconds ahead.
func TestRouteReplayRate(t *testing.T) {
	t.Parallel()
	w := past(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.route_set('app', '{"target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}}'), tidemark.route_replay('app', 'why', from_seq => 1, rate => 1)`)
	w.pass()
	w.wantRows(`select concat_ws(' ', seq, next_attempt_at - lag(next_attempt_at) over (order by seq)) from tidemark.pending order by seq`,
		"1", "2 00:00:01", "3 00:00:01", "4 00:00:01", "5 00:00:01")
	w.wantRows(`select concat_ws(' ', passed_seq, staged) from tidemark.replay_job`, "5 5")
	w.wantRows(`select tidemark.replay_cancel(1, 'too slow')::text`, "5")
	w.pass()
	w.wantRows(`select concat_ws(' ', state, passed_seq, staged) from tidemark.replay_summary where id = 1`, "cancelled 5 5")
	// The next is due in 1,000 s, whatever the passes are.
	w.exec(`truncate tidemark.pending; select tidemark.route_replay('app', 'why', from_seq => 1, rate => 0.001)`)
	for range 3 {
		w.pass()
	}
	w.wantRows(`select concat_ws(' ', passed_seq, staged) from tidemark.replay_job where id = 2`, "1 1")
	w.refused("TM013", "replay 1 is over: cancelled", `select tidemark.replay_cancel(1, 'again')`)
	w.refused("TM004", "there is no replay 9", `select tidemark.replay_cancel(9, 'why')`)
	w.refused("TM005", "needs a reason", `select tidemark.replay_cancel(1, ' ')`)
	w.wantSound()
}

// A new route that begins at the start of the log gets each event once: also those that a pass has read, and those that are read while
// the route is being made, and of shards at different places those that one has passed and another has not.
func TestNewRouteFromTheStart(t *testing.T) {
	t.Parallel()
	const newRoute = `select tidemark.route_set('late', '{"domain": "test", "target_kind": "sql", "target_ref": "public.receive_late", "enabled": true, "dry_run": false}'),
		tidemark.route_replay('late', 'it begins', from_seq => 1, outcomes => '{none}')`
	late := func(t *testing.T) (db *tidemarktest.DB, w session) {
		t.Helper()
		db = tidemarktest.NewDB(t)
		w = live(t, db)
		w.exec(`create table late (n int);
			create function receive_late(event jsonb) returns void language sql as $$ insert into late values ((event -> 'payload' ->> 'n')::int) $$`)
		return db, w
	}
	const got, finished = `select count(*)::text || ' of ' || count(distinct n) from late`, `select state from tidemark.replay_summary`
	t.Run("read before, settled after", func(t *testing.T) {
		t.Parallel()
		db, w := late(t)
		for n := range 3 {
			w.emit(n + 1)
		}
		w.passLimit(1)
		w.begin()
		w.passLimit(1)
		open(t, db, "operator").exec(newRoute)
		w.commit()
		for range 3 {
			w.pass()
		}
		w.wantRows(got, "3 of 3")
		w.wantRows(finished, "finished")
	})
	t.Run("read while it is made", func(t *testing.T) {
		t.Parallel()
		db, w := late(t)
		operator := open(t, db, "operator")
		operator.begin()
		operator.exec(newRoute)
		for n := range 3 {
			w.emit(n + 1)
		}
		w.passLimit(2)
		operator.commit()
		for range 3 {
			w.pass()
		}
		w.wantRows(got, "3 of 3")
		w.wantRows(finished, "finished")
	})
	t.Run("shards", func(t *testing.T) {
		t.Parallel()
		_, w := late(t)
		w.shards(4)
		for n := range 40 {
			w.emitKey(n+1, fmt.Sprint("k", n))
		}
		w.passShard(0, 5000)
		w.passShard(1, 10)
		w.exec(newRoute)
		// What a shard has not read comes anyway.
		w.wantRows(`select events::text from tidemark.route_replay('late', from_seq => 1, outcomes => '{none}', dry_run => true) where former is null`,
			one[string](w, `select count(*)::text from received`))
		w.exec(`select tidemark.route_worker_run('default', 5000, 0)`)
		// It waits for shards that are behind, says so, and does not keep the worker busy.
		w.wantRows(`select coalesce(tidemark.log_next('default'), 'nothing')`, "nothing")
		w.wantRows(`select state || ': ' || waits_for from tidemark.replay_summary`, "waiting: shard 2 of its worker, which has read to event 0")
		w.drainShards(4)
		w.drainShards(4)
		w.wantRows(got, "40 of 40")
		w.wantRows(finished, "finished")
		w.wantRows(`select coalesce(events::text, 'not known before') from tidemark.replay_summary`, "not known before")
		w.wantRows(`select count(*)::text || ' of ' || count(distinct n) from received`, "40 of 40")
		w.wantRows(problems)
	})
	t.Run("a number that was open", func(t *testing.T) {
		t.Parallel()
		db, w := late(t)
		w.shards(2)
		writer, operator := open(t, db, "writer"), open(t, db, "operator")
		writer.begin()
		writer.emitKey(1, one[string](w, `select 'k' || i from generate_series(1, 100) i where tidemark.shard_of('k' || i, 1, 2) = 1 limit 1`))
		w.emit(2)
		w.passShard(0, 5000)
		w.passShard(1, 5000)
		writer.commit()
		w.begin()
		w.passShard(1, 5000) // reads it without the route
		operator.exec(newRoute)
		operator.passShard(0, 5000)
		operator.wantRows(`select coalesce(tidemark.log_next('default'), 'nothing')`, "nothing")
		operator.wantRows(`select waits_for from tidemark.replay_summary`, "event 1, which a pass has still to record or a transaction to commit")
		w.commit()
		w.drainShards(2)
		w.drainShards(2)
		w.wantRows(got, "2 of 2")
		w.wantRows(finished, "finished")
	})
	t.Run("an empty log", func(t *testing.T) {
		t.Parallel()
		_, w := late(t)
		w.exec(newRoute)
		w.wantRows(`select tidemark.log_next('default')`, "replay")
		w.pass()
		w.wantRows(finished, "finished")
		w.wantRows(`select coalesce(tidemark.log_next('default'), 'nothing')`, "nothing")
	})
}

// At most a page of it is pending; a span of any length is done step by step, each event once.
func TestRouteReplayStepByStep(t *testing.T) {
	t.Parallel()
	w := poisoned(t, tidemarktest.NewDB(t))
	w.emitMany(7000)
	for w.pass().Events > 0 {
	}
	w.exec(`truncate received; select tidemark.route_set('app', '{"target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}}'), tidemark.route_replay('app', 'why', from_seq => 1)`)
	w.pass()
	w.pass()
	w.wantRows(`select count(*)::text from tidemark.pending`, "1000")
	w.exec(`select tidemark.route_set('app', '{"target_kind": "sql", "target_ref": "public.receive", "options": {}}')`)
	for range 10 {
		w.pass()
	}
	w.wantRows(`select concat_ws(' ', count(*), count(distinct n), min(n), max(n), bool_and(n = at - first)) from (
		select n, at, min(at) over () - 1 as first from received) r`, "7000 7000 1 7000 t")
	w.wantRows(replayJobs, "1 finished 7000 7000 7000 0 {}")
	w.wantSound()
}

// What fails again is a dead letter, also where an older one of it was resolved.
func TestRouteReplayFails(t *testing.T) {
	t.Parallel()
	w := poisoned(t, tidemarktest.NewDB(t))
	w.emitMany(3)
	w.poison("P0001", 2)
	w.pass()
	w.exec(`delete from poison; select tidemark.dead_letter_replay_many()`)
	w.wantRows(letters, "app 2 P0001 2 sent")
	w.poison("P0002", 2, 3)
	w.exec(`truncate received; select tidemark.route_replay('app', 'why', from_seq => 1)`)
	w.pass()
	w.wantReceived(1)
	w.wantRows(letters, "app 2 P0002 4 open", "app 3 P0002 3 open")
	w.wantRows(replayJobs, "1 finished 3 3 1 2 {}")
	w.exec(`delete from poison; select tidemark.dead_letter_replay_many()`)
	w.wantReceived(1, 2, 3)
	w.wantSound()
}

// A replay on its way outside holds up no live event of its key, and waits for none.
func TestRouteReplayIsNoQueue(t *testing.T) {
	t.Parallel()
	w := past(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.route_set('app', '{"target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}, "ordering": "key"}')`)
	w.emitKey(9, "k")
	w.exec(`select tidemark.route_replay('app', 'why', from_seq => 1)`)
	w.pass()
	w.wantRows(`select concat_ws(' ', key, events) from tidemark.pending_keys('default', 10)`, "k 1")
	w.wantRows(`select concat_ws(' ', (p).seq, (p).replay_id) from unnest(tidemark.pending_due('default', 1, '{}', '{}', 0)) p order by (p).seq`,
		"1 1", "2 1", "3 1", "4 1", "5 1", "6 1", "7 1", "8 1", "9")
	w.exec(`create table claimed as select epoch from tidemark.claim('default')`)
	w.wantRows(`select concat_ws(' ', seq, attempt_no, replay) from tidemark.pass_read('default', (table claimed), 10, null, '', '{}', '{}')
		where seq in (1, 9) order by seq`, "1 3 t", "9 2 f")
}

// Retention waits for a replay; what it dropped before is said.
func TestRouteReplayAndRetention(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.set("outbox.retention", "0")
	w.emit(1)
	w.drain()
	w.next(1_000_000)
	w.emit(2)
	w.drain()
	w.exec(`select tidemark.route_set('app', '{"enabled": false}'), tidemark.route_replay('app', 'why', from_seq => 1)`)
	w.wantRows(`select concat_ws(' ', action, object, detail) from tidemark.maintain() where object = 'outbox_p0'`, "kept outbox_p0 needed from number 1 by replay 1")
	w.exec(`select tidemark.route_set('app', '{"enabled": true}')`)
	w.drain()
	w.drain()
	w.wantReceived(1, 2, 1, 2)
	w.wantRows(`select concat_ws(' ', action, object) from tidemark.maintain() where object = 'outbox_p0'`, "dropped outbox_p0")
	w.wantRows(replays+`'app', dry_run => true, from_seq => 1)`, "none gone 999999", "sent 1", "1")
}
