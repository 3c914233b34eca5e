package test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// poisoned is live, with a receiver that raises what the table poison says for an event, after it has stored
// it, and counts its calls in a way that no rollback takes back.
func poisoned(t *testing.T, db *tidemarktest.DB) session {
	t.Helper()
	w := live(t, db)
	w.exec(`
create table poison (n int primary key, code text not null);
create sequence calls;
create or replace function receive(event jsonb) returns void language plpgsql as $$
declare
    bad text := (select code from poison where n = (event -> 'payload' ->> 'n')::int);
begin
    perform nextval('calls');
    insert into received (event_id, n, key) values ((event ->> 'event_id')::uuid, (event -> 'payload' ->> 'n')::int, event ->> 'key');
    if bad is not null then
        raise exception using errcode = bad, message = 'poison ' || bad;
    end if;
end $$`)
	return w
}

func (s session) poison(code string, numbers ...int) {
	s.t.Helper()
	s.exec(`delete from poison`)
	s.exec(`insert into poison select n, $1 from unnest($2::int[]) n`, code, numbers)
}

func (s session) emitMany(n int) {
	s.t.Helper()
	s.exec(`select tidemark.emit('test', 'tick', jsonb_build_object('n', n)) from generate_series(1, $1::int) n`, n)
}

// letters shows dead letters in order.
const letters = `select concat_ws(' ', r.route_code, l.seq, l.error_code, l.attempts, coalesce(l.resolution, 'open'))
	from tidemark.dead_letter l join tidemark.outbound_route r on r.id = l.route_id order by l.seq, l.route_id`

// wantSound wants evidence to hold together: each (key, attempt) once, and verify to find nothing lost.
func (s session) wantSound() {
	s.t.Helper()
	s.wantRows(`select idempotency_key || ' ' || attempt_no from tidemark.route_attempt group by 1, idempotency_key, attempt_no having count(*) > 1`)
	s.wantRows(`select "check" || ': ' || detail from tidemark.verify() where status = 'fail' and "check" like 'W%'`)
}

// RW5: exactly the bad ones of 5,000 are dead letters, for as few statements as halving takes, and the others
// arrive in order. Without a bad one nothing falls back.
func TestPoisonInABatch(t *testing.T) {
	t.Parallel()
	for _, bad := range [][]int{{}, {1}, {1000, 1001}, {3777}, {5000}, {2001, 2002, 2900, 4444}} {
		t.Run(fmt.Sprint(bad), func(t *testing.T) {
			t.Parallel()
			w := poisoned(t, tidemarktest.NewDB(t))
			w.emitMany(5000)
			w.poison("P0001", bad...)
			got := w.pass()
			// Of the statements with it at least the last one failed, and no more than the depth of the halving.
			if got.Fallbacks < len(bad) || got.Fallbacks > 12*len(bad) {
				t.Errorf("%d fallbacks", got.Fallbacks)
			}
			want := map[string]int{"sent": 5000 - len(bad)}
			var rest []int
			for n := 1; n <= 5000; n++ {
				if !slices.Contains(bad, n) {
					rest = append(rest, n)
				}
			}
			lines := []string{}
			for _, n := range bad {
				want["failed"]++
				lines = append(lines, fmt.Sprintf("app %d P0001 1 open", n))
			}
			equal(t, "decided", got.Decided, want)
			w.wantReceived(rest...)
			w.wantRows(letters, lines...)
			w.wantRows(`select concat_ws(' ', outcome, reason, detail, count(*)) from tidemark.route_attempt where outcome <> 'sent' group by outcome, reason, detail`,
				slices.Repeat([]string{fmt.Sprintf("failed P0001 poison P0001 %d", len(bad))}, min(len(bad), 1))...)
			w.wantRows(`select concat_ws(' ', watermark_id, events_seen, attempts_written, dead_lettered) from tidemark.worker_cursor`,
				fmt.Sprintf("5000 5000 5000 %d", len(bad)))
			w.wantSound()
		})
	}
}

// RW6: what a dead letter keeps.
func TestDeadLetterKeepsTheEvent(t *testing.T) {
	t.Parallel()
	w := poisoned(t, tidemarktest.NewDB(t))
	w.exec(`set timezone = 'UTC'`)
	w.exec(`select tidemark.emit('test', 'tick', '{"n": 1}', 'k', 's', 'batch', 'high', 'public.t', '7', 'idem', 'trace', 'ann', '2026-01-02 03:04:05.678901+00')`)
	w.poison("22012", 1)
	w.pass()
	w.wantReceived()
	w.wantRows(`select (l.event_snapshot = tidemark.event_json(o))::text from tidemark.dead_letter l, tidemark.outbox o`, "true")
	w.wantRows(`select concat_ws(' ', l.idempotency_key = 'tm:default:app:' || o.event_id, l.event_id = o.event_id, l.seq, l.error_code, l.error_detail, l.attempts,
		l.first_failed_at = l.last_failed_at, l.first_failed_at > o.created_at, l.resolved_at is null)
		from tidemark.dead_letter l, tidemark.outbox o`, "t t 1 22012 poison 22012 1 t t t")
	w.refused("23505", "dead_letter_idempotency_key_key", `insert into tidemark.dead_letter (idempotency_key, worker_id, route_id, seq, event_id, event_snapshot, error_code)
		select idempotency_key, worker_id, route_id, 2, event_id, event_snapshot, error_code from tidemark.dead_letter`)
	w.refused("23514", "", `update tidemark.dead_letter set resolved_at = now()`)
	w.refused("23514", "", `update tidemark.dead_letter set resolution = 'lost', resolved_at = now(), resolved_by = 'x'`)
}

// An error of the surroundings makes no dead letter: the event is tried again by the policy of its route, and nothing else waits for it.
func TestTransientErrors(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"40001", "40P01", "55P03", "53200", "53300", "57014", "57P01", "08006", "58030", "58P01", "25006", "TM009"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			w := poisoned(t, tidemarktest.NewDB(t))
			w.exec(`select tidemark.route_set('app', '{"ordering": "key", "retry_policy": {"base_seconds": 3600, "max_seconds": 3600, "jitter": 0}}');
				create table other (n int);
				create function take(event jsonb) returns void language sql as $$ insert into other values ((event -> 'payload' ->> 'n')::int) $$;
				select tidemark.route_set('other', '{"domain": "test", "target_kind": "sql", "target_ref": "public.take", "enabled": true, "dry_run": false}')`)
			w.emitKeys(10, "ab")
			w.poison(code, 7)
			w.passes()
			w.wantReceived(1, 2, 3, 4, 5, 6, 8, 10)
			w.wantRows(`select concat_ws(' ', seq, error_count, last_error, next_attempt_at = 'infinity') from tidemark.pending order by seq`,
				"7 1 "+code+": poison "+code+" f", "9 0 behind_key t")
			w.wantRows(`select concat_ws(' ', seq, attempt_no, outcome, reason) from tidemark.attempt where seq = 7`, "7 1 pending "+code)
			w.wantRows(`select count(*)::text from other`, "10")
			w.wantRows(letters)
			w.poison(code)
			w.exec(`update tidemark.pending set next_attempt_at = clock_timestamp() where seq = 7`)
			w.passes()
			w.wantRows(`select n::text from received where key = 'b' order by at`, "1", "3", "5", "7", "9")
			w.wantRows(letters)
			w.wantSound()
		})
	}
}

// A pass that an operator cancels while it records is given up whole, with what its targets have done, and repeated.
func TestCancelledPassLeavesNothing(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, operator := live(t, db), open(t, db, "operator")
	w.emitMany(10)
	operator.exec(`begin; lock table tidemark.decision in exclusive mode`)
	result := later[string](w, `select tidemark.route_worker_run()::text`)
	operator.waitsFor(w)
	operator.exec(`select pg_cancel_backend($1)`, w.conn.PgConn().PID())
	_, err := result()
	wantCode(t, err, "57014")
	operator.rollback()
	w.wantRows(traces, untouched)
	w.wantRows(`select concat_ws(' ', ticks_total, lease_epoch) from tidemark.heartbeat`, "0 0")
	w.pass()
	w.wantReceived(upTo(10)...)
	w.wantRows(letters)
}

// A deadlock that is over when the target is called again is no attempt.
func TestDeadlocksThatEnd(t *testing.T) {
	t.Parallel()
	w := poisoned(t, tidemarktest.NewDB(t))
	w.exec(`create or replace function receive(event jsonb) returns void language plpgsql as $$
begin
    if nextval('calls') < 3 then
        raise exception using errcode = '40P01';
    end if;
    insert into received (event_id, n) values ((event ->> 'event_id')::uuid, (event -> 'payload' ->> 'n')::int);
end $$`)
	w.emitMany(1)
	w.pass()
	w.wantReceived(1)
	w.wantRows(`select concat_ws(' ', attempt_no, outcome) from tidemark.route_attempt`, "1 sent")
}

// Every other error is the event's. That goes for Tidemark's own too, which a target meets when it emits
// something that is refused: were it transient, this event would stop the worker for ever.
func TestErrorsOfTheEvent(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"P0001", "P0004", "22012", "23505", "23514", "42883", "42501", "54001", "0A000", "P0002", "TM001", "TM002", "TM003", "TM005", "XX000"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			w := poisoned(t, tidemarktest.NewDB(t))
			w.emitMany(3)
			w.poison(code, 2)
			w.pass()
			w.wantReceived(1, 3)
			w.wantRows(letters, "app 2 "+code+" 1 open")
			w.poison(code, 2)
			w.wantRows(`select concat_ws(' ', outcome, reason, detail) from tidemark.dead_letter_replay(1)`, "failed "+code+" poison "+code)
		})
	}
}

// A target that emits what is refused is such a target.
func TestTargetThatEmits(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`create or replace function receive(event jsonb) returns void language plpgsql as $$
begin
    perform tidemark.emit_strict('test', event -> 'payload' ->> 'next');
end $$;
select tidemark.type_set('test', 'tock'), tidemark.route_set('app', '{"type": "tick"}');
select tidemark.emit('test', 'tick', jsonb_build_object('next', next)) from unnest(array['tock', 'unheard', 'tock']) next`)
	w.pass()
	w.wantRows(letters, "app 2 TM001 1 open")
	w.wantRows(`select type from tidemark.outbox order by seq`, "tick", "tick", "tick", "tock", "tock")
}

// RO6, RW8: a target that is not there, or of a kind that is not built, drops nothing in silence, and stands
// in nobody's way.
func TestBadTargets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, ref, code string }{
		{"sql", "public.nowhere", "42883"},
		{"sql", "no_schema.receive", "42883"},
		{"sql", "public.wrong_type", "42883"},
		{"sql", "", "42883"},
		{"sql", ".", "42883"},
		{"sql", "no such", "42883"},
		{"sql", "a..b", "42883"},
		{"sql", "a.b.c", "42883"},
		{"sql", "a.b.c.d", "42883"},
		{"sql", `"`, "42883"},
		{"sql", "public.receive(jsonb)", "42883"},
		{"sql", "public.receive(e.event); drop table received; --", "42883"},
		{"river", "job", "42P01"},
		{"pigeon", "x", "unknown_target_kind"},
		{"SQL", "public.receive", "unknown_target_kind"},
		{"", "public.receive", "unknown_target_kind"},
	} {
		t.Run(c.kind+" "+c.ref, func(t *testing.T) {
			t.Parallel()
			w := live(t, tidemarktest.NewDB(t))
			w.allowAnyTarget()
			w.exec(`create function public.wrong_type(event json) returns void language sql as ''; create function public.wrong_type(variadic events tidemark.outbox[]) returns void language sql as ''`)
			w.exec(`insert into tidemark.outbound_route (route_code, domain, target_kind, target_ref, enabled, dry_run) values ('bad', 'test', $1, $2, true, false)`, c.kind, c.ref)
			w.emit(1)
			w.emit(2)
			got := w.pass()
			equal(t, "decided", got.Decided, map[string]int{"sent": 2, "failed": 2})
			equal(t, "fallbacks", got.Fallbacks, 0)
			w.wantReceived(1, 2)
			w.wantRows(letters, "bad 1 "+c.code+" 1 open", "bad 2 "+c.code+" 1 open")
			w.wantRows(`select concat_ws(' ', outcome, reason) from tidemark.dead_letter_replay(1)`, "failed "+c.code)
			w.wantRows(`select status from tidemark.verify() where "check" = 'route targets'`, "fail")
		})
	}
}

// RO6.
func TestRefusedDecisions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ change, reason string }{
		"ambiguous":  {`exclusive = true, target_ref = 'public.receive'`, "ambiguous_route"},
		"bad policy": {`retry_policy = '{"max_attempts": 0}'`, "bad_retry_policy"},
		"no policy":  {`retry_policy = '[]'`, "bad_retry_policy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := live(t, tidemarktest.NewDB(t))
			w.exec(`select tidemark.route_set('bad', '{"domain": "test", "target_kind": "sql", "target_ref": "public.other", "enabled": true, "dry_run": false}')`)
			w.exec(`update tidemark.outbound_route set ` + c.change + ` where route_code = 'bad'`)
			w.emit(1)
			w.pass()
			w.wantRows(`select concat_ws(' ', seq, outcome, reason) from tidemark.route_attempt where route_code = 'bad'`, "1 failed "+c.reason)
			w.wantRows(letters+` desc limit 1`, "bad 1 "+c.reason+" 1 open")
			// The other one of two that are ambiguous fails with it; beside any other it delivers.
			equal(t, "received", len(w.received()) == 0, name == "ambiguous")

			// Open to failure: on record, and no dead letter.
			w.exec(`update tidemark.outbound_route set fail_closed = false where route_code = 'bad'`)
			w.emit(2)
			w.pass()
			w.wantRows(`select concat_ws(' ', seq, outcome, reason) from tidemark.route_attempt where route_code = 'bad' order by seq`, "1 failed "+c.reason, "2 skipped "+c.reason)
			w.wantRows(`select count(*)::text from tidemark.dead_letter l join tidemark.outbound_route r on r.id = l.route_id where r.route_code = 'bad'`, "1")
			w.wantSound()
		})
	}
}

// What fails on one route is delivered on the others.
func TestPoisonOfOneRoute(t *testing.T) {
	t.Parallel()
	w := poisoned(t, tidemarktest.NewDB(t))
	w.exec(`create table other (n int);
create function take(event jsonb) returns void language sql as $$ insert into other values ((event -> 'payload' ->> 'n')::int) $$;
select tidemark.route_set(code, '{"domain": "test", "target_kind": "sql", "target_ref": "public.take", "enabled": true, "dry_run": false}') from unnest(array['aa', 'zz']) code`)
	w.emitMany(20)
	w.poison("P0001", 5, 20)
	w.pass()
	equal(t, "received", len(w.received()), 18)
	w.wantRows(`select concat_ws(' ', count(*), count(distinct n)) from other`, "40 20")
	w.wantRows(letters, "app 5 P0001 1 open", "app 20 P0001 1 open")
	w.wantSound()
}

func TestPendingIsStagedForTheDaemon(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.route_set(kind, jsonb_build_object('domain', 'test', 'target_kind', kind, 'target_ref', case kind when 'webhook' then 'https://example.com/hook' else 'x' end,
			'options', case kind when 'webhook' then '{"unsigned": true}' else '{}' end::jsonb, 'enabled', true, 'dry_run', false, 'ordering', 'key'))
		from unnest(array['webhook', 'kafka', 'nats', 'stdout']) kind`)
	w.emitKey(1, "k1")
	w.emit(2)
	equal(t, "decided", w.pass().Decided, map[string]int{"sent": 2, "pending": 8})
	w.wantRows(`select concat_ws(' ', r.route_code, p.seq, coalesce(p.key, '-'), p.attempt_no, p.error_count, p.next_attempt_at <= clock_timestamp(), coalesce(p.dead_letter_id::text, '-'))
		from tidemark.pending p join tidemark.outbound_route r on r.id = p.route_id order by r.route_code, p.seq`,
		"kafka 1 k1 1 0 t -", "kafka 2 - 1 0 t -", "nats 1 k1 1 0 t -", "nats 2 - 1 0 t -",
		"stdout 1 k1 1 0 t -", "stdout 2 - 1 0 t -", "webhook 1 k1 1 0 t -", "webhook 2 - 1 0 t -")
	w.wantRows(`select concat_ws(' ', outcome, count(*)) from tidemark.route_attempt group by outcome order by outcome`, "pending 8", "sent 2")
	w.wantSound()
}

// The target kind notify wakes; it carries ids only.
func TestNotifyCarriesIDsOnly(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, listener := live(t, db), open(t, db, "listener")
	w.exec(`select tidemark.route_set('app', '{"target_kind": "notify", "target_ref": "it''s \"new\""}')`)
	listener.exec(`listen "it's ""new"""`)
	id := one[string](w, `select tidemark.emit('test', 'tick', '{"n": 1, "name": "ann"}', key => 'k')::text`)
	w.pass()
	got := listener.notification()
	equal(t, "payload", got.Payload, fmt.Sprintf(`{"event_id" : "%s", "domain" : "test", "type" : "tick", "route" : "app"}`, id))
	if strings.Contains(got.Payload, "ann") {
		t.Error("the payload travels in the notification")
	}
}

// What a target defers to the commit is its event's fault, not the batch's.
func TestTargetThatDefers(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`create table parent (id int primary key);
		create table child (parent int references parent deferrable initially deferred);
		create or replace function receive(event jsonb) returns void language plpgsql as $$ begin
			if event -> 'payload' ->> 'n' = '2' then insert into child values (7); end if;
			insert into received (n) values ((event -> 'payload' ->> 'n')::int); end $$`)
	for n := 1; n <= 3; n++ {
		w.emit(n)
	}
	if got := w.pass(); got.Events != 3 {
		t.Errorf("%+v", got)
	}
	w.wantReceived(1, 3)
	w.wantRows(letters, "app 2 23503 1 open")
}
