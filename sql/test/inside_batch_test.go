package test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// twoForms is live, with two routes that do the same: one to a function that takes an event, one to a function that
// takes a batch. Each refuses what the table poison lists, after it has stored it. deferred refuses at the commit.
func twoForms(t *testing.T, db *tidemarktest.DB) session {
	t.Helper()
	w := live(t, db)
	w.exec(`
select tidemark.type_set('test', 'tock');
create table poison (n int primary key, code text not null);
create table parent (id int primary key);
create table taken (at bigint generated always as identity primary key, route text, n int, event jsonb,
    deferred int references parent deferrable initially deferred);
create sequence calls;
create function refuse(numbers int[]) returns void language plpgsql as $$
declare
    bad text := (select min(code) from poison where n = any (numbers) and code <> 'deferred');
begin
    if bad is not null then
        raise exception using errcode = bad, message = 'poison ' || bad;
    end if;
end $$;
create function take_each(event jsonb) returns void language plpgsql as $$
begin
    insert into taken (route, n, event, deferred) select 'each', (event -> 'payload' ->> 'n')::int, event,
        (select p.n from poison p where p.n = (event -> 'payload' ->> 'n')::int and p.code = 'deferred');
    perform refuse(array[(event -> 'payload' ->> 'n')::int]);
end $$;
create function take_batch(events tidemark.outbox[]) returns void language plpgsql as $$
begin
    perform nextval('calls');
    insert into taken (route, n, event, deferred) select 'batch', (e.payload ->> 'n')::int, to_jsonb(e),
        (select p.n from poison p where p.n = (e.payload ->> 'n')::int and p.code = 'deferred')
    from unnest(events) e;
    perform refuse(array(select (e.payload ->> 'n')::int from unnest(events) e));
end $$;
select tidemark.route_set('app', '{"enabled": false}'),
       tidemark.route_set('each', '{"domain": "test", "target_kind": "sql", "target_ref": "public.take_each", "enabled": true, "dry_run": false}'),
       tidemark.route_set('batch', '{"domain": "test", "target_kind": "sql", "target_ref": "public.take_batch", "enabled": true, "dry_run": false}')`)
	return w
}

// wantFormsAgree wants the two routes to have had the same events in the same order, and the same evidence of them.
func (s session) wantFormsAgree(when string) {
	s.t.Helper()
	for what, query := range map[string]string{
		"events":  `select event::text from taken where route = $1 order by at`,
		"letters": `select concat_ws(' ', l.seq, l.error_code, l.error_detail, l.attempts, l.resolution, l.event_snapshot) from tidemark.dead_letter l join tidemark.outbound_route r on r.id = l.route_id where r.route_code = $1 order by l.seq`,
		"pending": `select concat_ws(' ', p.seq, p.key, p.attempt_no, p.error_count, p.replay) from tidemark.pending p join tidemark.outbound_route r on r.id = p.route_id where r.route_code = $1 order by p.seq`,
		"record":  `select concat_ws(' ', a.seq, a.outcome, a.reason, a.attempt_no) from tidemark.route_attempt a where a.route_code = $1 order by a.seq, a.attempt_no`,
	} {
		each, batch := column[string](s, query, "each"), column[string](s, query, "batch")
		if fmt.Sprint(each) != fmt.Sprint(batch) {
			s.t.Errorf("%s: %s:\none by one %v\nbatches    %v", when, what, each, batch)
		}
	}
}

// A function that takes a batch gets what one gets that takes an event, in the same order: with culprits that raise or
// defer, keys, holes, pending events, replays, rewinds and dead letters tried again.
func TestBatchTargetIsAsOneByOne(t *testing.T) {
	t.Parallel()
	for _, ordering := range []string{"none", "key"} {
		t.Run(ordering, func(t *testing.T) {
			t.Parallel()
			w := twoForms(t, tidemarktest.NewDB(t))
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 1))
			w.exec(`update tidemark.outbound_route set ordering = $1 where route_code in ('each', 'batch')`, ordering)
			n := 0
			for step := range 40 {
				switch r.IntN(7) {
				case 0, 1:
					for range r.IntN(60) {
						n++
						w.emitKey(n, []string{"", "a", "b", "c"}[r.IntN(4)])
					}
					w.exec(`select tidemark.emit('test', 'tock', jsonb_build_object('n', $1::int, 'long', repeat('x', $2::int), 'deep', '{"a": [1, null, "ä"]}'::jsonb), key => 'k', stream => 's', severity => 'high')`, n+1, r.IntN(5000))
					n++
				case 2:
					w.begin() // a hole
					w.emitKey(-1, "a")
					w.rollback()
				case 3:
					w.exec(`insert into poison values ($1, $2) on conflict do nothing`, 1+r.IntN(n+10), []string{"P0001", "23514", "deferred"}[r.IntN(3)])
				case 4:
					w.exec(`delete from poison where n % 2 = $1`, r.IntN(2))
					w.exec(`select tidemark.dead_letter_replay(l.id) from tidemark.dead_letter l where l.resolved_at is null and l.seq % 3 = $1 order by l.route_id, l.seq`, r.IntN(3))
				case 5:
					w.exec(`select tidemark.worker_rewind('default', (c.watermark_id::bigint * $1)::bigint, 'drill') from tidemark.worker_cursor c where c.worker = 'default'`, r.Float64())
				case 6:
					w.exec(`select tidemark.route_replay(r, 'drill', from_seq => $1::bigint, to_seq => $1::bigint + 20) from unnest(array['each', 'batch']) r`, 1+r.IntN(n+1))
				}
				w.passLimit(1 + r.IntN(80))
				w.wantFormsAgree(fmt.Sprintf("step %d", step))
			}
			w.passes()
			w.wantFormsAgree("the end")
			w.wantSound()
		})
	}
}

// A page of clean events is a few calls, not one for each; a culprit is found by halving.
func TestBatchTargetIsCalledForMany(t *testing.T) {
	t.Parallel()
	w := twoForms(t, tidemarktest.NewDB(t))
	w.exec(`update tidemark.outbound_route set enabled = false where route_code = 'each'`)
	w.emitMany(5000)
	equal(t, "decided", w.pass().Decided["sent"], 5000)
	if calls := one[int](w, `select last_value from calls`); calls > 8 {
		t.Errorf("%d calls for 5,000 events", calls)
	}
	w.exec(`insert into poison values (1, 'P0001'), (777, '23514'), (778, 'deferred'); select setval('calls', 1)`)
	w.exec(`truncate taken`)
	w.emitMany(5000)
	got := w.pass()
	equal(t, "decided", got.Decided["sent"], 4997)
	equal(t, "failed", got.Decided["failed"], 3)
	if calls := one[int](w, `select last_value from calls`); calls > 70 {
		t.Errorf("%d calls", calls)
	}
	w.wantRows(letters, "batch 5001 P0001 1 open", "batch 5777 23514 1 open", "batch 5778 23503 1 open")
	w.wantRows(`select concat_ws(' ', count(*), count(distinct n)) from taken`, "4997 4997")
	w.wantSound()
}

// One call that takes too long makes suspects of its events, down to the one that hangs: the others go on.
func TestBatchTargetHangs(t *testing.T) {
	t.Parallel()
	w := hanging(t, tidemarktest.NewDB(t), `, "ordering": "key"`)
	w.exec(`drop function receive(jsonb);
create function receive(events tidemark.outbox[]) returns void language plpgsql as $$
begin
    insert into received (event_id, n, key) select e.event_id, (e.payload ->> 'n')::int, e.key from unnest(events) e;
    while exists (select from slow s where s.how = 'loop' and s.n = any (array(select (e.payload ->> 'n')::int from unnest(events) e))) loop
        null;
    end loop;
end $$;
insert into slow values (20, 'loop');
set statement_timeout = '3s'`)
	w.emitKeys(50, "ab")
	equal(t, "first pass", w.pass().Decided, map[string]int{"pending": 100})
	w.passes()
	w.wantReceived(upTo(50, 20)...)
	w.wantRows(letters, "app 20 57014 2 open")
	w.wantRows(`select count(*)::text from other`, "50")
	w.wantSound()
}

// route_set names what is wrong with the function of an SQL target; what was there first is called while there are two.
func TestBatchTargetForms(t *testing.T) {
	t.Parallel()
	w := twoForms(t, tidemarktest.NewDB(t))
	takes := func(ref string) string {
		return one[string](w, `select concat_ws(': ', takes, problem) from tidemark.sql_target($1)`, ref)
	}
	equal(t, "event", takes("public.take_each"), "event")
	equal(t, "batch", takes("public.take_batch"), "batch")
	equal(t, "neither", takes("public.nowhere"), "there is no function public.nowhere(jsonb)")
	w.exec(`select tidemark.route_set('each', '{"target_ref": "public.nowhere"}')`) // it may be created later
	w.wantRows(`select status || ' ' || detail from tidemark.verify() where "check" = 'route targets'`,
		"fail each: there is no function public.nowhere(jsonb)")
	w.exec(`select tidemark.route_set('each', '{"target_ref": "public.take_each"}')`)
	w.exec(`create function take_batch(event jsonb) returns void language sql as $$ insert into taken (route, n) values ('two', (event -> 'payload' ->> 'n')::int) $$`)
	w.refused("TM005", "route batch: there are two functions, public.take_batch(jsonb) and public.take_batch(tidemark.outbox[]): drop one",
		`select tidemark.route_set('batch', '{"target_ref": "public.take_batch", "target_kind": "notify"}'), tidemark.route_set('batch', '{"target_kind": "sql"}')`)
	w.wantRows(`select status || ' ' || detail from tidemark.verify() where "check" = 'route targets'`,
		"fail batch: there are two functions, public.take_batch(jsonb) and public.take_batch(tidemark.outbox[]): drop one")
	w.exec(`select tidemark.route_set('batch', '{"description": "it can still be changed"}'), tidemark.route_set('batch', '{"enabled": false}')`)
	w.refused("TM005", "there are two functions", `select tidemark.route_set('batch', '{"enabled": true}')`)
	w.exec(`update tidemark.outbound_route set enabled = true where route_code = 'batch'`)
	w.emit(1)
	w.pass()
	w.wantRows(`select route from taken order by route`, "each", "two")
	w.exec(`drop function take_batch(jsonb)`)
	w.emit(2)
	w.pass()
	w.wantRows(`select concat_ws(' ', route, n) from taken order by at`, "each 1", "two 1", "each 2", "batch 2")

	for route, form := range map[string]string{"each": "event", "batch": "batch"} {
		w.wantRows(`select concat_ws(' ', outcome, detail, route ->> 'target_takes') from tidemark.route_test('`+route+`')`, "accepted "+form)
	}
	w.wantRows(`select count(*)::text from taken`, "4")
}
