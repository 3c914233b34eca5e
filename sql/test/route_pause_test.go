package test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// The events of a paused route are decided and wait, in the order of their keys, and those of others go on. When it is resumed all
// of them are delivered once, in order.
func TestRoutePause(t *testing.T) {
	t.Parallel()
	s := gated(t)
	s.emitKeyed("a", "1")
	s.emitKeyed("a", "2")
	s.pass()
	s.wantRows(`select tidemark.route_pause('keyed', 'its table is rebuilt')::text`, "true")
	s.wantRows(`select tidemark.route_pause('keyed', 'again')::text`, "false")
	s.wantRows(`select concat_ws(' ', action, reason, before ->> 'paused_at' is null, after ->> 'paused_at' is null) from tidemark.audit
		where object = 'outbound_route keyed' order by id desc limit 1`, "update its table is rebuilt t f")
	for _, key := range []string{"2", "1", "", "2", "1"} {
		s.emitKeyed("b", key)
	}
	s.exec(`truncate took`)
	equal(t, "decided", s.passLimit(3).Decided["pending"], 3)
	s.pass()
	s.pass()
	s.wantRows(`select concat_ws(' ', route, seq) from took order by n`, "any_order 3", "any_order 4", "any_order 5", "any_order 6", "any_order 7")
	s.wantRows(`select concat_ws(' ', route_code, item, error_count, held) from tidemark.waiting order by item`,
		"keyed 3 0 f", "keyed 4 0 f", "keyed 5 0 f", "keyed 6 0 f", "keyed 7 0 f")
	s.wantRows(`select count(*)::text from tidemark.route_attempt where route_code = 'keyed' and outcome = 'pending'`, "5")
	s.wantRows(`select coalesce(tidemark.log_next('default'), 'nothing')`, "nothing") // an idle worker does not spin

	s.wantRows(`select tidemark.route_resume('keyed', 'it is back')::text`, "true")
	s.wantRows(`select tidemark.route_resume('keyed', 'again')::text`, "false")
	s.wantRows(`select tidemark.log_next('default')`, "retry")
	s.emitKeyed("b", "2")
	s.pass()
	s.wantRows(`select concat_ws(' ', key, seq) from took where route = 'keyed' order by n`, "2 3", "1 4", "5", "2 6", "1 7", "2 8")
	s.wantRows(`select item from tidemark.waiting`)

	s.refused("TM004", `there is no route "nope"`, `select tidemark.route_pause('nope', 'x')`)
	s.refused("TM004", `there is no route "nope"`, `select tidemark.route_resume('nope', 'x')`)
	s.refused("TM005", `no column "paused_at" that can be set`, `select tidemark.route_set('keyed', '{"paused_at": "2020-01-01"}')`)
}

// Each kind of target inside the database, and passes of all shards.
func TestRoutePauseOfEachKind(t *testing.T) {
	t.Parallel()
	for _, target := range []string{
		`"target_kind": "sql", "target_ref": "public.one"`, `"target_kind": "sql", "target_ref": "public.many"`,
		`"target_kind": "river", "target_ref": "tick"`, `"target_kind": "notify", "target_ref": "ears"`,
	} {
		for _, shards := range []int{1, 3} {
			t.Run(fmt.Sprint(target, " shards ", shards), func(t *testing.T) {
				t.Parallel()
				db := tidemarktest.NewDB(t)
				migrateRiver(t, db, "public")
				s := open(t, db, "worker")
				s.exec(`create table got (n bigserial, seq bigint);
					create function one(e jsonb) returns void language sql as $$ insert into public.got (seq) values ((e ->> 'seq')::bigint) $$;
					create function many(e tidemark.outbox[]) returns void language sql as $$ insert into public.got (seq) select u.seq from unnest(e) u $$;
					select tidemark.type_set('test', 'tick'), tidemark.stage_set('live', 'test'), tidemark.gate_set('routes.enabled', true);
					select tidemark.worker_set('w', jsonb_build_object('shards', ` + fmt.Sprint(shards) + `));
					select tidemark.gate_set('worker.w.enabled', true);
					select tidemark.route_set('r', '{"worker": "w", "domain": "test", "enabled": true, "dry_run": false, ` + target + `}');
					listen ears`)
				const run = `select tidemark.worker_run('w')`
				arrived := func() int {
					return one[int](s, `select (select count(*) from got) + (select count(*) from river_job)`)
				}
				heard := target == `"target_kind": "notify", "target_ref": "ears"`
				s.exec(run)
				s.exec(`select tidemark.route_pause('r', 'test')`)
				for i := range 5 {
					s.emitKey(i, fmt.Sprint(i%2))
				}
				s.exec(run)
				s.exec(run)
				equal(t, "arrived while paused", arrived(), 0)
				s.wantRows(`select concat_ws(' ', count(*), sum(error_count)) from tidemark.pending`, "5 0")
				s.exec(`select tidemark.route_resume('r', 'test')`)
				s.exec(run)
				s.wantRows(`select concat_ws(' ', outcome, count(*)) from tidemark.route_attempt group by outcome order by 1`, "pending 5", "sent 5")
				if heard {
					for range 5 {
						s.notification()
					}
					return
				}
				equal(t, "arrived", arrived(), 5)
			})
		}
	}
}

// What a closed gate refuses, a pause refuses: retries, replays of the log, dead letters. A test delivery goes.
func TestRoutePauseHoldsRetriesAndReplays(t *testing.T) {
	t.Parallel()
	s := gated(t)
	for range 3 {
		s.emitKeyed("a", "1")
	}
	s.exec(`insert into sick select r, 1 from unnest(array['keyed', 'any_order']) r`)
	s.pass()
	s.exec(`delete from sick; truncate took; select tidemark.route_pause('any_order', 'test')`)
	letter := `tidemark.dead_letter where route_id = (select id from tidemark.outbound_route where route_code = 'any_order')`
	s.refused("TM009", "is not replayed: closed by route any_order", `select tidemark.dead_letter_replay(id) from `+letter)
	s.refused("TM009", "tidemark route resume any_order --reason", `select tidemark.dead_letter_replay(id) from `+letter)
	s.wantRows(`select (tidemark.dead_letter_replay(id, true)).outcome::text from `+letter, "pending")
	s.refused("TM009", "closed by route any_order", `select tidemark.dead_letter_replay_many('any_order')`)
	s.wantRows(`select (tidemark.dead_letter_replay_many('keyed')).outcome::text`, "sent")
	s.exec(`insert into sick values ('keyed', 4)`)
	s.emitKeyed("a", "1")
	s.pass()
	s.exec(`delete from sick`)
	// Where no route is named, those of the paused one are left out, and the answer says so.
	const open = `select string_agg(r.route_code, ' ') from tidemark.dead_letter l join tidemark.outbound_route r on r.id = l.route_id where l.resolved_at is null`
	s.wantRows(`select concat_ws(' ', p.route_code, p.outcome, p.reason, p.detail) from tidemark.dead_letter_replay_many(dry_run => true) p`,
		"any_order skipped route_paused the route is paused: resume it first", "keyed pending")
	s.wantRows(`select concat_ws(' ', id, letters) from tidemark.letter_job_add('replay', 'test', source => 'outbox')`, "1 2")
	s.exec(`select tidemark.letter_job_step()`)
	s.wantRows(`select concat_ws(' ', done, outcomes, waits_for) from tidemark.letter_job`, `2 {"sent": 1, "paused": 1}`)
	s.wantRows(open, "any_order")
	s.wantRows(`select concat_ws(' ', p.route_code, p.outcome, p.reason, p.attempt_no) from tidemark.dead_letter_replay_many() p`, "any_order skipped route_paused 1")
	s.exec(`delete from tidemark.letter_job; select tidemark.pending_discard('test', 'any_order', 4); delete from tidemark.dead_letter where seq = 4`)
	s.exec(`select tidemark.letter_job_add('replay', 'test', 'any_order')`)
	s.exec(`select tidemark.letter_job_step()`)
	s.wantRows(`select waits_for from tidemark.letter_job`, one[string](s, `select format('dead letter %s is not replayed: closed by route any_order', id) from `+letter))
	s.wantRows(`select outcome from tidemark.route_test('any_order', 'test')`, "accepted")

	// A replay of the log: it is not even staged, and says what it waits for.
	s.exec(`truncate took; select tidemark.route_replay('any_order', 'again', from_seq => 2, to_seq => 3)`)
	s.pass()
	s.pass()
	s.wantRows(`select route from took`)
	s.wantRows(`select waits_for from tidemark.replay_summary`, "the route is paused")
	s.wantRows(`select coalesce(tidemark.log_next('default'), 'nothing')`, "nothing")
	// One that is staged already.
	s.exec(`insert into tidemark.pending (worker_id, route_id, seq, domain, next_attempt_at, replay)
		select 1, id, 2, 'a', now(), true from tidemark.outbound_route where route_code = 'any_order'`)
	s.pass()
	s.wantRows(`select route from took`)
	s.exec(`delete from tidemark.pending`)

	// What waits for a retry.
	s.exec(`insert into tidemark.pending (worker_id, route_id, seq, domain, key, next_attempt_at, error_count)
		select 1, id, 1, 'a', '1', now() + interval '1 hour', 1 from tidemark.outbound_route where route_code = 'any_order'`)
	s.refused("TM009", "is not tried: closed by route any_order", `select tidemark.pending_retry('now', 'any_order', 1)`)
	s.refused("TM009", "tidemark route resume any_order --reason now", `select tidemark.pending_retry('now', 'any_order')`)
	s.exec(`update tidemark.pending set next_attempt_at = now() - interval '1 s'`)
	s.pass()
	s.wantRows(`select route from took`)
	s.wantRows(`select error_count::text from tidemark.pending`, "1")

	// In dry run nothing is delivered, and the pause does not count yet.
	s.exec(`begin; update tidemark.outbound_route set dry_run = true where route_code = 'any_order'`)
	s.wantRows(`select p.outcome::text from tidemark.dead_letter_replay_many() p`, "dry_run")
	s.exec(`rollback`)

	s.exec(`select tidemark.route_resume('any_order', 'test')`)
	s.pass()
	s.pass()
	s.wantRows(`select concat_ws(' ', route, seq, count(*)) from took group by route, seq order by seq`, "any_order 1 1", "any_order 2 1", "any_order 3 1")
}

// The pass of a daemon leaves alone what waits of a paused route, so that it does not read it again and again.
func TestPausedRouteIsNotRead(t *testing.T) {
	t.Parallel()
	s := gated(t)
	s.exec(`select tidemark.route_set('out', '{"domain": "a", "target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}, "enabled": true, "dry_run": false}')`)
	s.emitKeyed("a", "1")
	s.pass()
	const due = `select cardinality(tidemark.pending_due('default', 1, null, null, 0))::text`
	s.wantRows(due, "1")
	s.exec(`select tidemark.route_pause('out', 'test')`)
	s.wantRows(due, "0")
	s.exec(`select tidemark.route_resume('out', 'test')`)
	s.wantRows(due, "1")
}

// A pause that comes while a pass delivers takes the pass back, as a gate does; the next one leaves its events waiting.
func TestRoutePausedInMidPass(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w := live(t, db)
	operator := open(t, db, "operator")
	w.exec(`create or replace function receive(event jsonb) returns void language plpgsql as $$ begin raise 'sick'; end $$`)
	w.emit(0)
	w.pass()
	w.slowTarget()
	w.emit(1)
	operator.exec(`select pg_advisory_lock(1)`)
	passed := make(chan summary)
	go func() { passed <- w.pass() }()
	operator.waitsFor(w)
	operator.exec(`select tidemark.route_pause('app', 'test')`)
	operator.exec(`select pg_advisory_unlock(1)`)
	equal(t, "pass", <-passed, summary{Status: "closed", Gate: "route app"})
	w.wantReceived()
	equal(t, "decided", w.pass().Decided["pending"], 1)
	w.wantReceived()
	operator.exec(`select tidemark.route_resume('app', 'test')`)
	w.pass()
	w.wantReceived(1)
	w.wantRows(`select last_value::text from calls`, "2")

	// The same of a dead letter that is tried again.
	operator.exec(`select pg_advisory_lock(1)`)
	replayed := make(chan *pgconn.PgError)
	go func() { replayed <- w.try(`select tidemark.dead_letter_replay(id) from tidemark.dead_letter`) }()
	operator.waitsFor(w)
	operator.exec(`select tidemark.route_pause('app', 'test')`)
	operator.exec(`select pg_advisory_unlock(1)`)
	if err := <-replayed; err == nil || !strings.Contains(err.Message, "closed meanwhile by route app") ||
		!strings.Contains(err.Hint, "tidemark route resume app --reason") {
		t.Error(err)
	}
	w.wantReceived(1)
}

// A route that is off or in dry run can be paused: that counts once it is live. All that shows the state says so.
func TestRoutePauseIsShown(t *testing.T) {
	t.Parallel()
	s := gated(t)
	const state = `select concat_ws(' ', state, paused_at is not null) from tidemark.route_summary where route_code = 'keyed'`
	const cause = `select concat_ws(' ', status, subject, waiting, regexp_replace(found, '\d{4}[^,]* by [^,]*|the oldest.*', '…', 'g'), sql, cli)
		from tidemark.cause where cause = 'route_paused'`
	s.exec(`update tidemark.outbound_route set enabled = false where route_code = 'keyed'; select tidemark.route_pause('keyed', 'a look')`)
	s.wantRows(state, "off t")
	s.emitKeyed("a", "1")
	s.pass()
	s.wantRows(`select outcome::text from tidemark.event_evidence(1) where route_code = 'keyed'`, "disabled")
	s.exec(`update tidemark.outbound_route set enabled = true, dry_run = true where route_code = 'keyed'`)
	s.wantRows(state, "dry run t")
	s.emitKeyed("a", "1")
	s.pass()
	s.wantRows(`select outcome::text from tidemark.event_evidence(2) where route_code = 'keyed'`, "dry_run")
	s.exec(`update tidemark.outbound_route set dry_run = false where route_code = 'keyed'`)
	s.wantRows(state, "paused t")
	s.wantRows(cause) // nothing waits
	s.exec(`begin; select tidemark.route_replay('keyed', 'again', from_seq => 1, to_seq => 2)`)
	s.wantRows(`select regexp_replace(found, '.*; ', '') from tidemark.cause where cause = 'route_paused'`, "a replay waits")
	s.exec(`rollback`)
	s.emitKeyed("a", "1")
	s.emitKeyed("a", "1")
	s.pass()
	s.wantRows(cause, `warn keyed 2 paused since …, reason: a look; … {"select tidemark.route_resume('keyed', 'its events wait');"} `+
		`{"tidemark route resume keyed --reason 'its events wait'"}`)
	s.exec(`update tidemark.pending set next_attempt_at = now() - interval '1 day', created_at = now() - interval '1 day'`)
	s.wantRows(`select concat_ws(' ', status, count, note) from tidemark.queue_health where kind = 'pending'`, "ok 2 paused")
	s.exec(`begin; insert into tidemark.pending (worker_id, route_id, seq) select 1, id, n from tidemark.outbound_route, generate_series(100, 10100) n where route_code = 'keyed'`)
	s.wantRows(`select note from tidemark.queue_health where kind = 'pending'`, "paused; 10000 or more")
	s.exec(`rollback`)
	s.wantRows(`select cause from tidemark.cause`, "route_paused")
	s.wantRows(`select concat_ws(' ', w.state, regexp_replace(w.sentence, ' at .*', ''), w.command) from tidemark.outbox o, tidemark.why(o.event_id, 'keyed') w where o.seq = 3`,
		"pending It waits, since the route was paused tidemark route resume keyed --reason 'tidemark why'")
	s.wantRows(`select concat_ws(' ', sentence, command) from tidemark.route_why_not('keyed') where reason <> 'pending'`,
		"pause: paused. tidemark route resume keyed --reason 'route why-not'")
	s.wantRows(`select concat_ws('. ', detail, hint) from tidemark.verify() where "check" = 'W2 gates'`,
		"deliveries of route keyed closed by its pause. tidemark gate open GATE; of a pause: tidemark route resume ROUTE, tidemark worker resume WORKER")

	// Its target was slow and down before: that it is slow explains nothing now.
	s.exec(`select tidemark.heartbeat_daemon('d', 'running', '{"slow": [{"route": "keyed", "p50": 1, "p99": 2, "since": "2020-01-01"}]}')`)
	s.exec(`update tidemark.outbound_route set concurrency = 1`)
	s.wantRows(`select cause from tidemark.cause`, "route_paused")

	// A pause is no configuration: apply does not undo it, and neither prints nor takes it.
	s.wantRows(`select (definition ? 'paused_at')::text from tidemark.configuration() where kind = 'route' and name = 'keyed'`, "false")
	s.exec(`select tidemark.configuration_apply('f', jsonb_build_array(jsonb_build_object('kind', kind, 'name', name, 'definition', definition || '{"concurrency": 7}')), 'test')
		from tidemark.configuration() where kind = 'route' and name = 'keyed'`)
	s.wantRows(state, "paused t")
	s.refused("TM005", "paused_at", `select tidemark.configuration_apply('f', '[{"kind": "route", "name": "keyed", "definition":
		{"domain": "*", "target_kind": "sql", "target_ref": "public.keyed", "paused_at": "2020-01-01"}}]', 'test')`)

	// Going live resumes it, as it resumes a paused worker.
	s.wantRows(`select concat_ws(' ', switch, was, sql) from tidemark.route_go_live('keyed', 'go') where changed`,
		"pause paused select tidemark.route_resume('keyed', 'go');")
	s.pass()
	s.wantRows(`select concat_ws(' ', seq) from took where route = 'keyed' order by n`, "3", "4")
	s.wantRows(cause)
}

// A route that owes nothing can be deleted while it is paused, and one that is made again with its name is not paused.
func TestPausedRouteIsDeleted(t *testing.T) {
	t.Parallel()
	s := gated(t)
	s.exec(`select tidemark.route_pause('keyed', 'test')`)
	s.emitKeyed("a", "1")
	s.pass()
	s.exec(`update tidemark.outbound_route set enabled = false where route_code = 'keyed'`)
	s.refused("TM005", "Enable it and resume it until they are sent", `select tidemark.route_delete('keyed', 'test')`)
	s.exec(`update tidemark.outbound_route set enabled = true where route_code = 'keyed'`)
	s.exec(`select tidemark.pending_discard('test', 'keyed', 1)`)
	s.exec(`select tidemark.dead_letter_discard(l.id, 'test') from tidemark.dead_letter l where l.resolved_at is null`)
	s.exec(`update tidemark.outbound_route set enabled = false where route_code = 'keyed'; select tidemark.route_delete('keyed', 'test');
		select tidemark.route_set('keyed', '{"domain": "*", "target_kind": "sql", "target_ref": "public.keyed"}')`)
	s.wantRows(`select concat_ws(' ', state, paused_at is null) from tidemark.route_summary where route_code = 'keyed'`, "off t")
}

// Pauses and resumes of any route between passes, with poison, dead letters, replays and gates: nothing of a paused route arrives,
// and in the end each event has arrived once or is a letter, in the order of its key.
func TestRoutePausesAtRandom(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	s := gated(t)
	s.exec(`create or replace function take(route text, event jsonb) returns void language plpgsql as $$ begin
			if exists (select from public.sick s where s.route = take.route and s.seq = (event ->> 'seq')::bigint) then
				raise 'sick'; end if;
			insert into public.took (route, seq, key, closed) select take.route, (event ->> 'seq')::bigint, event ->> 'key', r.paused_at is not null
			from tidemark.outbound_route r where r.route_code = take.route; end $$`)
	routes := []string{"keyed", "any_order"}
	for range 150 {
		switch r.IntN(7) {
		case 0, 1:
			s.exec(`select tidemark.emit(($1::text[])[1 + i % 3], 'x', key => case when i % 4 > 0 then (i * 7 % 5)::text end) from generate_series($2::int, $3::int) i`,
				[]string{"a", "b", "c"}, r.IntN(9), 9+r.IntN(9))
		case 2, 3:
			s.exec(fmt.Sprintf(`select tidemark.route_%s($1, 'test')`, []string{"pause", "resume"}[r.IntN(2)]), routes[r.IntN(2)])
		case 4:
			s.exec(`select tidemark.gate_set('domain.a.enabled', $1)`, r.IntN(2) == 0)
			s.exec(`insert into sick select $1, last_value + $2 from tidemark.outbox_seq_seq on conflict do nothing`, routes[r.IntN(2)], r.IntN(8))
		default:
			s.exec(fmt.Sprintf(`select tidemark.route_worker_run(batch_limit => %d)`, 1+r.IntN(12)))
		}
		s.wantRows(`select concat_ws(' ', route, seq) from took where closed`)
		if t.Failed() {
			t.FailNow()
		}
	}
	s.exec(`select tidemark.gate_set('domain.a.enabled', true), tidemark.route_resume(route_code, 'test') from tidemark.outbound_route`)
	s.wantEachOnce()
}
