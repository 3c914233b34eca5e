package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// shaping is live, with two routes that shape payloads alike: one to a function that takes an event, one to a function that
// takes a batch. The transform doubles n, drops what the table dropped lists, and raises at what the table poison lists.
func shaping(t *testing.T) session {
	t.Helper()
	w := live(t, tidemarktest.NewDB(t))
	w.shape()
	return w
}

func (s session) shape() {
	s.t.Helper()
	s.exec(`
create table dropped (n int primary key);
create table poison (n int primary key);
create table got (at bigint generated always as identity primary key, route text, n int, payload jsonb);
create function shape(payload jsonb) returns jsonb language plpgsql as $$
begin
    if exists (select from poison p where p.n = (payload ->> 'n')::int) then
        raise exception 'poison';
    elsif exists (select from dropped d where d.n = (payload ->> 'n')::int) then
        return null;
    end if;
    return payload || jsonb_build_object('twice', 2 * (payload ->> 'n')::int, 'secret', 'plugh');
end $$;
create function take_each(event jsonb) returns void language sql as $$
    insert into got (route, n, payload) values ('each', (event ->> 'seq')::int, event -> 'payload') $$;
create function take_batch(events tidemark.outbox[]) returns void language sql as $$
    insert into got (route, n, payload) select 'batch', e.seq, e.payload from unnest(events) e $$;
select tidemark.route_set('app', '{"enabled": false}');
select tidemark.route_set(kind, jsonb_build_object('domain', 'test', 'target_kind', 'sql', 'target_ref', 'public.take_' || kind,
    'enabled', true, 'dry_run', false, 'transform', 'public.shape', 'columns', array['twice', 'n', 'absent']))
from unnest(array['each', 'batch']) kind`)
}

const shapingRoutes = 2

func (s session) emitUpTo(n int) {
	s.t.Helper()
	s.exec(`select tidemark.emit('test', 'tick', jsonb_build_object('n', n, 'rest', 'x'), key => 'k' || n % 3) from generate_series(1, $1::int) n`, n)
}

// wantShaped wants each of the routes to have got these, in order.
func (s session) wantShaped(numbers ...int) {
	s.t.Helper()
	var want []string
	for _, n := range numbers {
		want = append(want, fmt.Sprintf(`{"n": %d, "twice": %d}`, n, 2*n))
	}
	for _, route := range []string{"each", "batch"} {
		if got := column[string](s, `select payload::text from got where route = $1 order by at`, route); fmt.Sprint(got) != fmt.Sprint(want) {
			s.t.Errorf("%s got\n%v, want\n%v", route, got, want)
		}
	}
}

const shapedEvidence = `select concat_ws(' ', outcome, reason, attempt_no, string_agg(distinct seq::text, ',' order by seq::text))
	from tidemark.route_attempt where route_code in ('each', 'batch') and outcome <> 'sent' group by outcome, reason, attempt_no order by 1`

const allVerified = `select "check" || ': ' || detail from tidemark.verify() where status = 'fail'`

// RO12: the transform makes the payload, then the columns are picked; null drops the event, with evidence; an event at which it
// fails is a dead letter with the event as it was, and no other event suffers. The function that is mended mends the letters.
func TestTransform(t *testing.T) {
	t.Parallel()
	for _, ordering := range []string{"none", "key"} {
		t.Run(ordering, func(t *testing.T) {
			t.Parallel()
			w := shaping(t)
			w.exec(`update tidemark.outbound_route set ordering = $1`, ordering)
			w.exec(`insert into dropped values (3), (4); insert into poison values (7), (8)`)
			w.emitUpTo(100)
			got := w.pass()
			equal(t, "the pass", got.Decided, map[string]int{"disabled": 100, "sent": 96 * shapingRoutes, "skipped": 2 * shapingRoutes, "failed": 2 * shapingRoutes})
			w.wantShaped(upTo(100, 3, 4, 7, 8)...)
			w.wantRows(shapedEvidence, "failed transform_failed 1 7,8", "skipped transform 1 3,4")
			w.wantRows(allVerified)
			w.wantRows(`select concat_ws(' ', error_code, error_detail, event_snapshot -> 'payload') from tidemark.dead_letter where seq = 7`,
				`transform_failed public.shape: poison (P0001) {"n": 7, "rest": "x"}`, `transform_failed public.shape: poison (P0001) {"n": 7, "rest": "x"}`)
			w.wantRows(`select y.sentence from tidemark.outbox o cross join lateral tidemark.why(o.event_id, 'each') y where o.seq in (3, 7) order by o.seq`,
				one[string](w, `select format('The route''s transform dropped it at %s, in attempt 1.', date_trunc('second', e.decided_at)) from tidemark.event_evidence(3) e where e.route_code = 'each'`),
				"It failed for good after one attempt: transform_failed, public.shape: poison (P0001).")
			w.wantRows(`select concat_ws(' ', n.route_code, m.sent, m.failed, m.recorded) from tidemark.route_minute m join tidemark.route_name n on n.id = m.route_id
				where n.route_code <> 'app' order by 1`, "batch 96 2 2", "each 96 2 2")

			const replay = `select concat_ws(' ', (r).outcome, (r).reason, (r).detail) from (
				select tidemark.dead_letter_replay(id, dry) r from tidemark.dead_letter cross join (values (true), (false)) d (dry)
				where seq = $1 and resolved_at is null order by id, dry desc offset 0) r`
			again := func(seq int, want ...string) {
				t.Helper()
				equal(t, "replay", column[string](w, replay, seq), want)
			}
			still := "failed transform_failed public.shape: poison (P0001)"
			again(7, still, still, still, still)
			w.exec(`delete from poison; insert into dropped values (8)`)
			again(7, "pending", "sent", "pending", "sent")
			again(8, "skipped transform", "skipped transform", "skipped transform", "skipped transform")
			w.wantShaped(append(upTo(100, 3, 4, 7, 8), 7)...)
			w.wantRows(`select distinct concat_ws(' ', seq, resolution, attempts) from tidemark.dead_letter order by 1`, "7 sent 3", "8 skipped 2")
			w.wantRows(allVerified)
		})
	}
}

// A replay of the route calls the transform as it is now, and counts what it drops.
func TestTransformInReplay(t *testing.T) {
	t.Parallel()
	w := shaping(t)
	w.emitUpTo(10)
	w.pass()
	w.exec(`insert into dropped values (2), (3); truncate got`)
	w.exec(`select tidemark.route_replay('each', from_seq => 1, reason => 'test'), tidemark.route_replay('batch', from_seq => 1, reason => 'test')`)
	for range 3 {
		w.pass()
	}
	w.wantShaped(upTo(10, 2, 3)...)
	w.wantRows(`select concat_ws(' ', state, staged, sent, failed, left_out) from tidemark.replay_summary`,
		`finished 10 8 0 {"transform": 2}`, `finished 10 8 0 {"transform": 2}`)
	w.wantRows(allVerified)
}

// Columns alone pick; a transform alone is not picked from. A notification has no payload, and may be dropped; a River job's
// arguments have the payload.
func TestTransformOrColumns(t *testing.T) {
	t.Parallel()
	w := shaping(t)
	w.exec(`select tidemark.route_set('each', '{"transform": null}'), tidemark.route_set('batch', '{"columns": null}')`)
	w.exec(`insert into dropped values (2)`)
	w.exec(`select tidemark.route_set('bell', '{"domain": "test", "target_kind": "notify", "target_ref": "bell", "transform": "public.shape", "enabled": true, "dry_run": false}')`)
	w.exec(`listen bell`)
	w.emitUpTo(2)
	w.pass()
	w.wantRows(`select concat_ws(' ', route, payload) from got order by 1`, `batch {"n": 1, "rest": "x", "twice": 2, "secret": "plugh"}`, `each {"n": 1}`, `each {"n": 2}`)
	if note := w.notification(); !strings.Contains(note.Payload, one[string](w, `select event_id::text from tidemark.outbox where seq = 1`)) {
		t.Error(note)
	}
	w.wantRows(`select concat_ws(' ', outcome, reason) from tidemark.route_attempt where route_code = 'bell' order by seq`, "sent", "skipped transform")

	db := tidemarktest.NewDB(t)
	migrateRiver(t, db, "public")
	r := riverRoute(t, db, `{}`)
	r.exec(`create function odd(p jsonb) returns jsonb language sql as $$ select p where (p ->> 'n')::int % 2 = 1 $$;
		select tidemark.route_set('jobs', '{"transform": "public.odd", "columns": ["n"]}')`)
	r.exec(`select tidemark.emit('test', 'tick', jsonb_build_object('n', n, 'rest', 'x')) from generate_series(1, 4) n`)
	r.pass()
	r.wantRows(`select args ->> 'payload' from public.river_job order by id`, `{"n": 1}`, `{"n": 3}`)
}

// A route names a transform and columns that can be, or it is refused in one line; one that was there and is gone is told by
// verify, its events are dead letters, and the route can be switched off.
func TestTransformChecked(t *testing.T) {
	t.Parallel()
	w := shaping(t)
	w.exec(`create function two(a jsonb, b jsonb) returns jsonb language sql as 'select a'; create function words(a jsonb) returns text language sql as 'select ''a''';
		create function many(a jsonb) returns setof jsonb language sql as 'select a'; create function texts(a text) returns jsonb language sql as 'select null::jsonb'`)
	for change, problem := range map[string]string{
		`"transform": "public.absent"`:               `route each: there is no function public.absent(jsonb)`,
		`"transform": "shape"`:                       `route each: transform "shape" must be SCHEMA.FUNCTION, without arguments`,
		`"transform": "public.shape(jsonb)"`:         `route each: transform "public.shape(jsonb)" must be SCHEMA.FUNCTION, without arguments`,
		`"transform": ""`:                            `route each: transform "" must be SCHEMA.FUNCTION, without arguments`,
		`"transform": "public.two"`:                  `route each: there is no function public.two(jsonb)`,
		`"transform": "public.texts"`:                `route each: there is no function public.texts(jsonb)`,
		`"transform": "public.words"`:                `route each: the function public.words(jsonb) returns text, not jsonb`,
		`"transform": "public.many"`:                 `route each: the function public.many(jsonb) returns a set of jsonb, not jsonb`,
		`"columns": []`:                              `route each: columns is {}, must name top-level keys of the payload`,
		`"columns": ["a", null]`:                     `route each: columns is {a,NULL}, must name top-level keys of the payload`,
		`"target_kind": "notify", "target_ref": "c"`: `route each: notify takes no columns`,
		`"target_kind": "kafka", "target_ref": "c", "columns": null, "options": {"format": "raw"}`: `route each: the format raw takes neither transform nor columns`,
	} {
		w.refused("TM005", problem, `select tidemark.route_set('each', '{`+change+`}')`)
	}
	w.refused("TM005", "route each: there is no function public.absent(jsonb)", `update tidemark.outbound_route set transform = 'public.absent' where route_code = 'each'`)

	w.exec(`alter function shape(jsonb) rename to reshape`)
	w.emitUpTo(2)
	w.pass()
	w.wantRows(`select detail from tidemark.verify() where "check" = 'route targets'`, "each: there is no function public.shape(jsonb); batch: there is no function public.shape(jsonb)")
	w.wantRows(`select distinct error_detail from tidemark.dead_letter`, "public.shape: there is no function public.shape(jsonb) (42883)")
	w.exec(`select tidemark.route_set('each', '{"enabled": false}')`)
	w.refused("TM005", "there is no function public.shape(jsonb)", `select tidemark.route_set('each', '{"enabled": true}')`)
}

// The transform runs with the rights and the search_path of the role that delivers, and writes nothing.
func TestTransformRights(t *testing.T) {
	t.Parallel()
	w := shaping(t)
	w.exec(`insert into tidemark.setting (key, value) values ('emit.payload_limit', '1000') on conflict (key) do update set value = excluded.value`)
	w.exec(`
create schema hidden;
create table hidden.secret ();
create table diary (n int);
create sequence numbers;
grant select, insert on diary to public;
create function hidden.deep(p jsonb) returns jsonb language sql as 'select p';
create function reads(p jsonb) returns jsonb language plpgsql as $$ begin perform from hidden.secret; return p; end $$;
create function closed(p jsonb) returns jsonb language sql as 'select p';
revoke execute on function closed from public;
create function writes(p jsonb) returns jsonb language plpgsql as $$ begin insert into diary values (1); return p; end $$;
create function unlocks(p jsonb) returns jsonb language plpgsql as $$ begin set transaction read write; insert into diary values (1); return p; end $$;
create function writes_later() returns int language sql as $$ insert into diary values (2) returning 2 $$;
create function defers(p jsonb) returns jsonb language plpgsql as $$ begin execute 'declare late cursor with hold for select public.writes_later()'; return p; end $$;
create function moves(p jsonb) returns jsonb language plpgsql as $$ begin perform set_config('search_path', 'hidden', false); return p; end $$;
create function prepares(p jsonb) returns jsonb language plpgsql as $$ begin deallocate mine; prepare mine as select 2; return p; end $$;
create function prepares_and_fails(p jsonb) returns jsonb language plpgsql as $$ begin execute 'prepare "it''s" as select 2'; assert false, 'failed'; end $$;
create function undoes(p jsonb) returns jsonb language plpgsql as $$ begin raise sqlstate 'UNDO0' using message = 'mine'; end $$;
create function who(p jsonb) returns jsonb language plpgsql as $$ begin return jsonb_build_object('who', current_user, 'path', current_setting('search_path')); end $$;
create function word(p jsonb) returns jsonb language sql as $$ select '"word"'::jsonb $$;
create function nothing(p jsonb) returns jsonb language sql as $$ select 'null'::jsonb $$;
create function grows(p jsonb) returns jsonb language sql as $$ select jsonb_build_object('n', repeat('x', 2000)) $$;
create role tidemark_test_shaper login in role tidemark_executor;
grant insert on got to tidemark_test_shaper;
select tidemark.route_set('batch', '{"enabled": false}')`)
	t.Cleanup(func() { w.exec(`reset role; drop owned by tidemark_test_shaper; drop role tidemark_test_shaper`) })
	for function, want := range map[string]string{
		"hidden.deep":               "permission denied for schema hidden (42501)",
		"public.reads":              "permission denied for schema hidden (42501)",
		"public.closed":             "permission denied for function closed (42501)",
		"public.writes":             "cannot execute INSERT in a read-only transaction (25006)",
		"public.unlocks":            "cannot set transaction read-write mode inside a read-only transaction (25001)",
		"public.defers":             `{"n": 1, "rest": "x"}`,
		"public.moves":              `{"n": 1, "rest": "x"}`,
		"public.undoes":             "mine (UNDO0)",
		"public.prepares":           "it prepared a statement in this session, which was dropped (42501)",
		"public.prepares_and_fails": "it prepared a statement in this session, which was dropped (42501)",
		"public.word":               "the payload is string, not an object (TM005)",
		"public.nothing":            "the payload is null, not an object (TM005)",
		"public.grows":              "the payload has 2009 bytes, and must have at most 1000 (TM005)",
		"public.who":                `{"who": "tidemark_test_shaper", "path": "\"$user\", public"}`,
	} {
		w.exec(`select tidemark.route_set('each', jsonb_build_object('transform', $1::text, 'columns', null))`, function)
		w.emitUpTo(1)
		w.exec(`do $$ begin deallocate mine; exception when invalid_sql_statement_name then null; end $$`)
		w.exec(`prepare mine as select 1`)
		w.exec(`set role tidemark_test_shaper`)
		w.pass()
		w.exec(`reset role`)
		if !strings.HasPrefix(want, "{") {
			want = "transform_failed " + function + ": " + want
		}
		w.wantRows(`select coalesce((select concat_ws(' ', error_code, error_detail) from tidemark.dead_letter l where l.seq = o.seq), (select payload::text from got where n = o.seq))
			from tidemark.outbox o order by o.seq desc limit 1`, want)
		w.wantRows(`select name || ': ' || statement from pg_prepared_statements where from_sql and (name <> 'mine' or statement ~ 'select 2')`)
	}
	w.wantRows(`select n::text from diary`)
	w.wantRows(`select current_setting('search_path')`, `"$user", public`)
}

// A target prepares a statement once in its session: it is none of the transform's, which the same pass calls again.
func TestTransformAndATargetThatPrepares(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`
create table got (at bigint generated always as identity primary key, n int);
create function same(p jsonb) returns jsonb language plpgsql as $$ begin return p; end $$;
create function take(event jsonb) returns void language plpgsql as $$
begin
    if not exists (select from pg_prepared_statements where name = 'once') then
        execute 'prepare once as insert into public.got (n) values ($1)';
    end if;
    execute format('execute once (%s)', event -> 'payload' -> 'n');
end $$;
select tidemark.route_set('app', '{"domain": "test", "target_kind": "sql", "target_ref": "public.take", "enabled": true, "dry_run": false,
    "transform": "public.same", "ordering": "none"}')`)
	w.exec(`select tidemark.emit('test', 'tick', jsonb_build_object('n', n)) from generate_series(1, 250) n`) // some waves
	w.passes()
	w.wantRows(`select error_detail from tidemark.dead_letter`)
	w.wantRows(`select concat_ws(' ', count(*), count(distinct n)) from got`, "250 250")
	w.wantRows(`select count(*)::text from pg_prepared_statements where name = 'once'`, "1")
}

// A transform that does not end is found as a target is, and the other events go on.
func TestTransformHangs(t *testing.T) {
	t.Parallel()
	w := hanging(t, tidemarktest.NewDB(t), `, "ordering": "key"`)
	w.exec(`create function wait(p jsonb) returns jsonb language plpgsql as $$
		begin
			while p ->> 'n' = '20' loop null; end loop;
			return case when p ->> 'n' = '21' then null else p end;
		end $$;
		select tidemark.route_set('app', '{"transform": "public.wait"}');
		set statement_timeout = '1s'`)
	w.emitKeys(50, "ab")
	w.passes()
	w.wantReceived(upTo(50, 20, 21)...)
	w.wantRows(`select concat_ws(' ', outcome, reason, seq) from tidemark.route_attempt where route_code = 'app' and outcome not in ('sent', 'pending') order by seq`,
		"failed 57014 20", "skipped transform 21")
	w.wantRows(`select count(*)::text from other`, "50")
	w.wantRows(allVerified)
}

// A backtest calls the transform, with the caller's rights, and tells a caller who may not.
func TestTransformInBacktest(t *testing.T) {
	t.Parallel()
	w := shaping(t)
	w.exec(`insert into dropped select generate_series(100, 800, 100); insert into poison values (5), (777)`)
	w.emitUpTo(1000)
	const test = `select concat_ws(' ', outcome, reason, events, detail) from tidemark.route_backtest('each', '-infinity') where domain is null order by 1`
	w.exec(`begin transaction isolation level repeatable read read only`)
	w.wantRows(test, "failed transform_failed 2 public.shape: poison (P0001)", "pending 990", "skipped transform 8")
	w.commit()
	w.wantRows(`select newest::text from tidemark.route_backtest('each', '-infinity') where outcome = 'skipped' and type = 'tick'`, "{800,700,600}")
	w.exec(`set role tidemark_reader`)
	w.wantRows(test, "pending 1000 the transform public.shape was not called: it takes tidemark_executor and the right to execute it")
	w.exec(`reset role`)
	for w.pass().Events > 0 {
	}
	w.wantRows(`select concat_ws(' ', outcome, reason, count(*)) from tidemark.route_attempt where route_code = 'each' group by outcome, reason order by 1`,
		"failed transform_failed 2", "sent 990", "skipped transform 8")
}
