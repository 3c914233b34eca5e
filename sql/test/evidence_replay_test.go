package test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// oneLetter is poisoned, with event 1 as dead letter 1.
func oneLetter(t *testing.T, db *tidemarktest.DB) session {
	t.Helper()
	w := poisoned(t, db)
	w.emitKey(1, "k")
	w.poison("22012", 1)
	w.pass()
	w.wantRows(letters, "app 1 22012 1 open")
	return w
}

const (
	replay  = `select concat_ws(' ', route_code, attempt_no, outcome, reason, detail) from tidemark.dead_letter_replay(1)`
	dry     = `select concat_ws(' ', route_code, attempt_no, outcome, reason, detail) from tidemark.dead_letter_replay(1, true)`
	history = `select concat_ws(' ', attempt_no, outcome, reason, detail) from tidemark.route_attempt order by attempt_no`
)

// RW7: failed again, failed in another way, then sent.
func TestReplay(t *testing.T) {
	t.Parallel()
	w := oneLetter(t, tidemarktest.NewDB(t))
	w.wantRows(replay, "app 2 failed 22012 poison 22012")
	w.wantRows(letters, "app 1 22012 2 open")
	w.poison("23505", 1)
	w.wantRows(replay, "app 3 failed 23505 poison 23505")
	w.wantRows(letters, "app 1 23505 3 open")
	w.wantRows(`select concat_ws(' ', first_failed_at < last_failed_at, error_detail) from tidemark.dead_letter`, "t poison 23505")
	w.wantReceived()

	failedAt := one[string](w, `select last_failed_at::text from tidemark.dead_letter`)
	w.exec(`delete from poison`)
	w.wantRows(replay, "app 4 sent")
	w.wantReceived(1)
	w.wantRows(letters, "app 1 23505 4 sent")
	w.wantRows(`select concat_ws(' ', resolved_by = session_user, resolved_at > last_failed_at, last_failed_at::text = '`+failedAt+`', error_detail) from tidemark.dead_letter`, "t t t poison 23505")
	w.wantRows(history, "1 failed 22012 poison 22012", "2 failed 22012 poison 22012", "3 failed 23505 poison 23505", "4 sent")
	w.refused("TM013", "dead letter 1 is resolved already: sent", replay)
	w.refused("TM013", "resolved already", dry)
	w.refused("TM013", "resolved already", `select tidemark.dead_letter_discard(1, 'why')`)
	w.wantReceived(1)
	w.wantSound()
}

// The audit has who tried a letter again, why, and what came of it, where a reason is given; a dry run and a refusal leave nothing.
func TestReplayWithAReason(t *testing.T) {
	t.Parallel()
	w := oneLetter(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.dead_letter_replay(1, true, 'only to see')`)
	w.exec(`select tidemark.dead_letter_replay(1)`)
	w.exec(`select tidemark.dead_letter_replay(1, reason => ' ')`)
	w.refused("TM004", "there is no dead letter 7", `select tidemark.dead_letter_replay(7, reason => 'none')`)
	w.exec(`select tidemark.dead_letter_replay(1, false, 'mended, I think')`)
	w.exec(`delete from poison; select tidemark.dead_letter_replay_many(route => 'app', reason => 'mended')`)
	w.wantRows(`select concat_ws(' ', object, actor = session_user, reason, after) from tidemark.audit where action = 'dead_letter_replay' order by id`,
		`dead_letter 1 t mended, I think {"outcome": "failed", "attempt_no": 4}`, `dead_letter 1 t mended {"outcome": "sent", "attempt_no": 5}`)
}

// What the route is now decides what a replay comes to.
func TestReplayOnTheRouteAsItIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ change, says, then string }{
		"dry run":          {`{"dry_run": true}`, "app 2 dry_run", "app 1 22012 2 dry_run"},
		"disabled":         {`{"enabled": false}`, "app 2 disabled", "app 1 22012 2 open"},
		"claims no longer": {`{"type": "tock"}`, "app 2 skipped no_route the route no longer claims this event", "app 1 22012 2 open"},
		"other target":     {`{"target_ref": "public.other"}`, "app 2 sent", "app 1 22012 2 sent"},
		"no target":        {`target_ref = 'public.nowhere'`, "app 2 failed 42883 route app: there is no function public.nowhere(jsonb)", "app 1 42883 2 open"},
		"unknown kind":     {`{"target_kind": "pigeon"}`, "app 2 failed unknown_target_kind", "app 1 unknown_target_kind 2 open"},
		"bad policy":       {`retry_policy = '{"jitter": 7}'`, "app 2 failed bad_retry_policy", "app 1 bad_retry_policy 2 open"},
		"no River":         {`{"target_kind": "river"}`, "app 2 failed 42P01 route app: there is no table public.river_job", "app 1 42P01 2 open"},
		"outside":          {`{"target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}}`, "app 2 pending", "app 1 22012 2 open"},
		"ambiguous":        {`{"target_ref": "public.other", "exclusive": true}`, "app 2 failed ambiguous_route", "app 1 ambiguous_route 2 open"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := oneLetter(t, tidemarktest.NewDB(t))
			w.allowAnyTarget()
			w.exec(`create function other(event jsonb) returns void language sql as ''`)
			if name == "ambiguous" {
				w.exec(`select tidemark.worker_set('w2'), tidemark.route_set('app2', '{"domain": "test", "target_kind": "sql", "target_ref": "public.other", "worker": "w2", "enabled": true}'),
					tidemark.route_set('app2', '{"dry_run": false}')`)
			}
			if strings.HasPrefix(c.change, "{") {
				w.exec(`select tidemark.route_set('app', $1::text::jsonb)`, c.change)
			} else { // what route_set refuses
				w.exec(`update tidemark.outbound_route set ` + c.change + ` where route_code = 'app'`)
			}
			w.wantRows(replay, c.says)
			w.wantRows(letters, c.then)
			w.wantReceived()
			w.wantSound()
		})
	}
}

// A replay to the outside waits for the daemon, with its snapshot; meanwhile there is no second one.
func TestReplayToTheOutside(t *testing.T) {
	t.Parallel()
	w := oneLetter(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.route_set('app', '{"target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}}')`)
	w.wantRows(replay, "app 2 pending")
	w.wantRows(`select concat_ws(' ', seq, attempt_no, key, dead_letter_id) from tidemark.pending`, "1 2 k 1")
	w.refused("TM013", "its delivery is pending", replay)
	w.refused("TM013", "its delivery is pending", `select tidemark.dead_letter_discard(1, 'why')`)
	w.wantRows(`select id::text from tidemark.dead_letter_replay_many()`)
	w.exec(`delete from tidemark.pending`) // the daemon is done
	w.wantRows(replay, "app 3 pending")
	w.wantRows(history, "1 failed 22012 poison 22012", "2 pending", "3 pending")
}

// A dry run says what would be, under closed gates too, and does nothing.
func TestReplayDry(t *testing.T) {
	t.Parallel()
	w := oneLetter(t, tidemarktest.NewDB(t))
	calls := one[int](w, `select last_value from calls`)
	w.exec(`create table before as select l::text from tidemark.dead_letter l`)
	w.wantRows(dry, "app 2 pending")
	w.exec(`select tidemark.gate_set('routes.enabled', false)`)
	w.wantRows(dry, "app 2 pending")
	w.exec(`update tidemark.outbound_route set dry_run = true`)
	w.wantRows(dry, "app 2 dry_run")
	w.wantRows(`select concat_ws(' ', id, outcome) from tidemark.dead_letter_replay_many(dry_run => true)`, "1 dry_run")
	w.allowAnyTarget()
	w.exec(`update tidemark.outbound_route set target_kind = 'pigeon'`)
	w.wantRows(dry, "app 2 failed unknown_target_kind")
	w.exec(`update tidemark.outbound_route set domain = 'x'`)
	w.wantRows(dry, "app 2 skipped no_route the route no longer claims this event")
	w.wantRows(`select l::text from tidemark.dead_letter l except table before`)
	w.wantRows(history, "1 failed 22012 poison 22012")
	equal(t, "calls", one[int](w, `select last_value from calls`), calls)
}

func TestReplayWithAGateClosed(t *testing.T) {
	t.Parallel()
	for name, c := range closers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := oneLetter(t, tidemarktest.NewDB(t))
			w.exec(`delete from poison`)
			w.exec(c.close)
			w.refused("TM009", "closed by "+c.gate, replay)
			w.refused("TM009", "closed by "+c.gate, `select tidemark.dead_letter_replay_many()`)
			w.wantRows(letters, "app 1 22012 1 open")
			w.wantReceived()
			w.exec(c.reopen)
			w.wantRows(replay, "app 2 sent")
			w.wantReceived(1)
		})
	}
}

// Closed while the target is at work: taken back.
func TestReplayClosedMeanwhile(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, operator := oneLetter(t, db), open(t, db, "operator")
	w.exec(`drop sequence calls`)
	w.slowTarget()
	operator.exec(`select pg_advisory_lock(1)`)
	result := later[string](w, replay)
	operator.waitsFor(w)
	operator.exec(`select tidemark.gate_set('worker.default.enabled', false)`)
	operator.exec(`select pg_advisory_unlock(1)`)
	_, err := result()
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Code != "TM009" || pgErr.Message != "dead letter 1 is not replayed: closed meanwhile by worker.default.enabled" {
		t.Errorf("got %v", err)
	}
	w.wantReceived()
	w.wantRows(letters, "app 1 22012 1 open")
	w.wantRows(history, "1 failed 22012 poison 22012")
}

// Closed after the letter of its worker was sent, while one of another worker is: all is taken back.
func TestReplayOfManyClosedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ close, gate, hint string }{
		"worker's gate": {`select tidemark.gate_set('worker.default.enabled', false)`, "worker.default.enabled", "tidemark gate open worker.default.enabled --reason"},
		"pause":         {`select tidemark.route_pause('app', 'why')`, "route app", "tidemark route resume app --reason"},
		"dry run":       {`update tidemark.outbound_route set dry_run = true where route_code = 'app'`, "route app", "tidemark route why-not app"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			w, operator := oneLetter(t, db), open(t, db, "operator")
			w.exec(`select tidemark.worker_set('other'), tidemark.gate_set('worker.other.enabled', true);
				create function public.slow(event jsonb) returns void language plpgsql as $$
				begin
					insert into received (n) values (2);
					perform pg_advisory_xact_lock_shared(1);
					if exists (select from poison) then raise exception using errcode = '22012'; end if;
				end $$;
				select tidemark.route_set('slow', '{"worker": "other", "domain": "test", "target_kind": "sql", "target_ref": "public.slow", "enabled": true, "dry_run": false}');
				select tidemark.worker_rewind('other', 0, 'why')`)
			w.passOther()
			w.exec(`delete from poison`)
			w.wantRows(`select string_agg(r.route_code, ' ' order by l.id) from tidemark.dead_letter l join tidemark.outbound_route r on r.id = l.route_id`, "app slow")
			operator.exec(`select pg_advisory_lock(1)`)
			result := later[string](w, `select string_agg(outcome::text, ' ') from tidemark.dead_letter_replay_many()`)
			operator.waitsFor(w)
			operator.exec(c.close)
			operator.exec(`select pg_advisory_unlock(1)`)
			_, err := result()
			var pgErr *pgconn.PgError
			if !errors.As(err, &pgErr) || pgErr.Code != "TM009" || pgErr.Message != "the dead letters are not replayed: closed meanwhile by "+c.gate || !strings.Contains(pgErr.Hint, c.hint) {
				t.Errorf("got %#v", err)
			}
			w.wantReceived()
			w.wantRows(`select count(*)::text from tidemark.dead_letter where resolved_at is null`, "2")
		})
	}
}

// A snapshot of before shows gates that are closed by now as open: nothing is replayed by it.
func TestReplayWithAnOldSnapshot(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, operator := oneLetter(t, db), open(t, db, "operator")
	w.exec(`delete from poison; select tidemark.letter_job_add('replay', 'mended', 'app')`)
	for _, level := range []string{"repeatable read", "serializable"} {
		w.exec(`begin isolation level ` + level)
		w.wantRows(`select count(*)::text from tidemark.dead_letter`, "1") // the snapshot
		operator.exec(`select tidemark.gate_set('worker.default.enabled', false)`)
		for _, act := range []string{replay, `select tidemark.dead_letter_replay_many()`, `select tidemark.letter_job_step()`} {
			w.refused("TM006", "it must see gates that were closed since it began", act)
		}
		w.wantRows(dry, "app 2 pending") // says what would be
		w.wantRows(`select outcome::text from tidemark.dead_letter_replay_many(dry_run => true)`, "pending")
		w.commit()
		w.wantReceived()
		operator.exec(`select tidemark.gate_set('worker.default.enabled', true)`)
	}
	w.exec(`select tidemark.letter_job_step()`)
	w.wantReceived(1)
}

// What is not the event's fault fails this letter alone: a job goes on with the others.
func TestReplayWithATransientError(t *testing.T) {
	t.Parallel()
	w := poisoned(t, tidemarktest.NewDB(t))
	w.emitMany(3)
	w.poison("22012", 1, 2, 3)
	w.pass()
	w.poison("40001", 2)
	w.exec(`select tidemark.letter_job_add('replay', 'mended', 'app')`)
	w.wantRows(`select tidemark.letter_job_step()::text`, "3")
	w.wantReceived(1, 3)
	w.wantRows(letters, "app 1 22012 2 sent", "app 2 40001 2 open", "app 3 22012 2 sent")
}

// Two who replay the same one: the second waits, and then there is nothing left to replay, or all.
func TestReplayTwiceAtOnce(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"commit", "rollback"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			w, second, watch := oneLetter(t, db), open(t, db, "second"), open(t, db, "watch")
			w.exec(`delete from poison`)
			w.begin()
			w.wantRows(replay, "app 2 sent")
			result := later[string](second, replay)
			watch.waitsFor(second)
			w.exec(end)
			got, err := result()
			if end == "rollback" {
				equal(t, "second", got, "app 2 sent")
			} else {
				wantCode(t, err, "TM013")
			}
			w.wantReceived(1)
			w.wantRows(history, "1 failed 22012 poison 22012", "2 sent")
		})
	}
}

// RW6: the snapshot is enough. Its row of the log is gone, with its evidence; what comes later is kept.
func TestReplayWithoutTheLog(t *testing.T) {
	t.Parallel()
	w := oneLetter(t, tidemarktest.NewDB(t))
	id := one[string](w, `select event_id::text from tidemark.outbox`)
	w.next(1_000_000)
	w.set("outbox.retention", "0")
	w.emit(2)
	w.pass()
	w.pass()
	w.wantRows(`select concat_ws(' ', action, replace(object, 'tidemark.', '')) from tidemark.maintain() where action = 'dropped'`, "dropped outbox_p0")
	w.wantRows(`select seq::text from tidemark.outbox`, "1000000")
	w.wantRows(replay, "app 2 failed 22012 poison 22012")
	w.exec(`delete from poison`)
	w.wantRows(replay, "app 3 sent")
	w.wantReceived(2, 1)
	w.wantRows(`select event_id::text from received where n = 1`, id)
	w.wantRows(`select concat_ws(' ', event_id, attempt_no, outcome, idempotency_key) from tidemark.route_attempt where seq = 1 order by attempt_no`,
		id+" 2 failed tm:default:app:"+id, id+" 3 sent tm:default:app:"+id)
	w.wantRows(letters, "app 1 22012 3 sent")
	w.wantSound()
}

func TestReplayMany(t *testing.T) {
	t.Parallel()
	w := poisoned(t, tidemarktest.NewDB(t))
	w.exec(`create function also(event jsonb) returns void language plpgsql as 'begin raise division_by_zero; end';
select tidemark.route_set('other', '{"domain": "test", "target_kind": "sql", "target_ref": "public.also", "payload_filter": {"n": 3}, "enabled": true, "dry_run": false}')`)
	w.emitMany(8)
	w.exec(`insert into poison select n, case when n < 5 then 'P0001' else '23505' end from generate_series(1, 8) n`)
	w.pass()
	// Told in another order than that of the events, and at times that are hours apart.
	w.exec(`update tidemark.dead_letter set last_failed_at = timestamptz '2026-01-01 00:00+00' + interval '1 hour' * seq`)
	many := func(arguments string) string {
		return fmt.Sprintf(`select concat_ws(' ', d.seq, m.route_code, m.outcome) from tidemark.dead_letter_replay_many(%s) with ordinality m
			join tidemark.dead_letter d using (id) order by m.ordinality`, arguments)
	}
	w.wantRows(many(`'other', dry_run => true`), "3 other pending")
	w.wantRows(many(`error_code => '23505', dry_run => true`), "5 app pending", "6 app pending", "7 app pending", "8 app pending")
	w.wantRows(many(`failed_since => '2026-01-01 07:00+00', dry_run => true`), "7 app pending", "8 app pending")
	w.wantRows(many(`failed_until => '2026-01-01 03:00+00', dry_run => true`), "1 app pending", "2 app pending")
	w.wantRows(many(`'app', 'P0001', '2026-01-01 02:00+00', '2026-01-01 04:00+00', dry_run => true`), "2 app pending", "3 app pending")
	w.wantRows(many(`max_letters => 4, dry_run => true`), "1 app pending", "2 app pending", "3 app pending", "3 other pending")
	w.wantRows(many(`'app', '22012', dry_run => true`))
	w.wantReceived()
	for _, limit := range []string{"0", "-1", "50001", "null"} {
		w.refused("TM005", "must be from 1 to 50000", `select tidemark.dead_letter_replay_many(max_letters => `+limit+`)`)
	}

	w.exec(`delete from poison where n <> 6`)
	w.wantRows(many(`'app', '23505'`), "5 app sent", "6 app failed", "7 app sent", "8 app sent")
	w.wantReceived(5, 7, 8)
	w.wantRows(many(``), "1 app sent", "2 app sent", "3 app sent", "3 other failed", "4 app sent", "6 app failed")
	w.wantReceived(5, 7, 8, 1, 2, 3, 4)
	w.wantRows(`select concat_ws(' ', count(*) filter (where resolved_at is null), count(*)) from tidemark.dead_letter`, "2 9")
	w.wantRows(`select concat_ws(' ', attempt_no, count(*)) from tidemark.route_attempt where outcome <> 'sent' group by attempt_no order by attempt_no`, "1 9", "2 2", "3 1")
	w.wantSound()
}

// Page by page, each letter once, also those that fail again.
func TestReplayManyGoesOn(t *testing.T) {
	t.Parallel()
	w := poisoned(t, tidemarktest.NewDB(t))
	w.emitMany(10)
	w.exec(`insert into poison select n, 'P0001' from generate_series(1, 10) n`)
	w.pass()
	w.exec(`delete from poison where n not in (2, 4)`)
	page := func(after string) []string {
		return column[string](w, `select concat_ws(' ', d.seq, m.outcome)
			from tidemark.dead_letter_replay_many(max_letters => 4, after => (select id from tidemark.dead_letter where seq = `+after+`)) with ordinality m
			join tidemark.dead_letter d using (id) order by m.ordinality`)
	}
	equal(t, "first", page("null"), []string{"1 sent", "2 failed", "3 sent", "4 failed"})
	equal(t, "second", page("4"), []string{"5 sent", "6 sent", "7 sent", "8 sent"})
	equal(t, "third", page("8"), []string{"9 sent", "10 sent"})
	equal(t, "end", page("10"), []string{})
	w.wantReceived(1, 3, 5, 6, 7, 8, 9, 10)
	w.wantRows(letters+" limit 4", "app 1 P0001 2 sent", "app 2 P0001 2 open", "app 3 P0001 2 sent", "app 4 P0001 2 open")
	w.refused("TM004", "there is no dead letter 99 to continue after", `select tidemark.dead_letter_replay_many(after => 99)`)
	w.wantSound()
}

func TestDiscard(t *testing.T) {
	t.Parallel()
	w := oneLetter(t, tidemarktest.NewDB(t))
	for _, reason := range []string{"null", "''", "'  '"} {
		w.refused("TM005", "needs a reason", `select tidemark.dead_letter_discard(1, `+reason+`)`)
	}
	w.wantRows(letters, "app 1 22012 1 open")
	w.exec(`select tidemark.dead_letter_discard(1, 'the order was a test')`)
	w.wantRows(letters, "app 1 22012 1 discarded")
	w.wantRows(`select concat_ws(' ', resolved_by = session_user, resolved_at is not null, resolution_reason, event_snapshot -> 'payload') from tidemark.dead_letter`,
		`t t the order was a test {"n": 1}`)
	w.wantRows(`select concat_ws(' ', actor = session_user, action, object, reason) from tidemark.audit where action like 'dead%'`,
		"t dead_letter_discard dead_letter 1 the order was a test")
	w.refused("TM013", "resolved already: discarded", `select tidemark.dead_letter_discard(1, 'again')`)
	w.refused("TM013", "resolved already: discarded", replay)
	w.wantRows(`select id::text from tidemark.dead_letter_replay_many()`)
	w.wantRows(history, "1 failed 22012 poison 22012")
}

// What a target defers to the commit is the fault of its letter: with one bad letter the others of the call are replayed.
func TestReplayThatDefers(t *testing.T) {
	t.Parallel()
	w := poisoned(t, tidemarktest.NewDB(t))
	w.emitMany(3)
	w.poison("P0001", 1, 2, 3)
	w.pass()
	w.exec(`delete from poison;
		create table parent (id int primary key);
		create table child (parent int references parent deferrable initially deferred);
		create or replace function receive(event jsonb) returns void language plpgsql as $$ begin
			if event -> 'payload' ->> 'n' = '2' then insert into child values (7); end if;
			insert into received (n) values ((event -> 'payload' ->> 'n')::int); end $$`)
	w.wantRows(`select concat_ws(' ', id, outcome, reason) from tidemark.dead_letter_replay_many()`, "1 sent", "2 failed 23503", "3 sent")
	w.wantReceived(1, 3)
	w.wantRows(letters, "app 1 P0001 2 sent", "app 2 23503 2 open", "app 3 P0001 2 sent")
	w.wantRows(`select count(*)::text from child`, "0")
	w.wantSound()
}
