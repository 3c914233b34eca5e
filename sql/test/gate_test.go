package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// wantClosed wants a pass to be a no-op that names the gate.
func (s session) wantClosed(gate string) {
	s.t.Helper()
	equal(s.t, "pass", s.pass(), summary{Status: "closed", Gate: gate})
}

// traces is all that a pass could leave behind, but for the heartbeat.
const traces = `select concat_ws(' ', (select count(*) from received), (select count(*) from tidemark.decision),
	(select count(*) from tidemark.attempt), (select count(*) from tidemark.pending), (select count(*) from tidemark.dead_letter),
	(select concat_ws(' ', watermark_id, last_run_at, events_seen) from tidemark.worker_cursor where worker = 'default'))`

const untouched = "0 0 0 0 0 0 0"

// RO4: both gates are closed at first, absent means closed, and so does every value but true.
func TestGates(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`delete from tidemark.setting where key like '%.enabled'`)
	w.emit(1)

	w.wantClosed("routes.enabled")
	w.exec(`select tidemark.gate_set('routes.enabled', true)`)
	w.wantClosed("worker.default.enabled")
	w.exec(`select tidemark.gate_set('worker.default.enabled', false)`)
	w.wantClosed("worker.default.enabled")
	for _, value := range []string{"", "TRUE", "yes", "1", "on", " true"} {
		w.exec(`update tidemark.setting set value = $1 where key = 'worker.default.enabled'`, value)
		w.wantClosed("worker.default.enabled")
	}
	w.exec(`select tidemark.gate_set('worker.default.enabled', true), tidemark.gate_set('routes.enabled', false)`)
	w.wantClosed("routes.enabled")
	w.wantRows(traces, untouched)

	w.exec(`select tidemark.gate_set('routes.enabled', true)`)
	equal(t, "pass", w.pass().Status, "ran")
	w.wantReceived(1)
}

func TestFreshInstallIsClosed(t *testing.T) {
	t.Parallel()
	w := open(t, tidemarktest.NewDB(t), "worker")
	w.wantClosed("routes.enabled")
	w.wantRows(`select concat_ws(' ', tidemark.gate_open('routes.enabled'), tidemark.gate_open('worker.default.enabled'), tidemark.gate_open('no.such'),
		tidemark.gate_open(null), tidemark.armed(), (select stage from tidemark.stage))`, "f f f f f dry_run")
}

// A closed gate leaves a sign of life and takes no lease: the epoch stays.
func TestClosedGateBeats(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	const beat = `select concat_ws(' ', ticks_total, last_status, lease_epoch, last_beat_at > clock_timestamp() - interval '1 minute')
		from tidemark.heartbeat where executor_id = 'default/outbox/0'`
	w.pass()
	w.wantRows(beat, "1 ok 1 t")
	w.exec(`select tidemark.gate_set('routes.enabled', false)`)
	w.pass()
	w.wantRows(beat, "2 closed 1 t")
}

// The gate of one worker closes no other worker.
func TestGatesAreOneWorkers(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.worker_set('other'), tidemark.route_set('app', '{"worker": "other"}')`)
	w.emit(1)
	w.wantRows(`select tidemark.route_worker_run('other') ->> 'gate'`, "worker.other.enabled")
	equal(t, "default", w.pass().Status, "ran")
	w.exec(`select tidemark.gate_set('worker.other.enabled', true), tidemark.gate_set('worker.default.enabled', false)`)
	w.wantRows(`select tidemark.route_worker_run('other') ->> 'status'`, "ran")
	w.wantReceived(1)
	w.wantClosed("worker.default.enabled")
}

// closers is everything that stops deliveries, and how a pass then calls it.
var closers = map[string]struct{ close, gate, reopen string }{
	"master gate":   {`select tidemark.gate_set('routes.enabled', false)`, "routes.enabled", `select tidemark.gate_set('routes.enabled', true)`},
	"worker's gate": {`select tidemark.gate_set('worker.default.enabled', false)`, "worker.default.enabled", `select tidemark.gate_set('worker.default.enabled', true)`},
	"gate, deleted": {`delete from tidemark.setting where key = 'routes.enabled'`, "routes.enabled", `select tidemark.gate_set('routes.enabled', true)`},
	"pause":         {`update tidemark.worker_cursor set paused_at = now()`, "paused", `update tidemark.worker_cursor set paused_at = null`},
	"stage":         {`select tidemark.stage_set('dry_run', 'test')`, "stage", `select tidemark.stage_set('live', 'test')`},
	"another cluster": {
		`update tidemark.stage set system_identifier = system_identifier + 1`, "stage",
		`update tidemark.stage set system_identifier = system_identifier - 1`,
	},
	"another database": {`update tidemark.stage set database = 'copy'`, "stage", `update tidemark.stage set database = current_database()`},
}

func TestClosedBeforeThePass(t *testing.T) {
	t.Parallel()
	for name, c := range closers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := live(t, tidemarktest.NewDB(t))
			w.emit(1)
			w.exec(c.close)
			w.wantClosed(c.gate)
			w.wantRows(traces, untouched)
			w.exec(c.reopen)
			w.pass()
			w.wantReceived(1)
		})
	}
}

// RO3, RO4: what another session closes while a target is at work is closed for this pass too: what it has
// done is taken back.
func TestClosedInMidPass(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ close, gate, reopen string }{
		"route off":     {`update tidemark.outbound_route set enabled = false`, "route app", `update tidemark.outbound_route set enabled = true`},
		"route dry run": {`update tidemark.outbound_route set dry_run = true`, "route app", `update tidemark.outbound_route set dry_run = false`},
	}
	for name, c := range closers {
		cases[name] = c
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := tidemarktest.NewDB(t)
			w, operator := live(t, db), open(t, db, "operator")
			w.emit(1)
			w.slowTarget()
			operator.exec(`select pg_advisory_lock(1)`)
			passed := make(chan summary)
			go func() { passed <- w.pass() }()
			operator.waitsFor(w)
			operator.exec(c.close)
			operator.exec(`select pg_advisory_unlock(1)`)
			equal(t, "pass", <-passed, summary{Status: "closed", Gate: c.gate})
			w.wantRows(traces, untouched)
			w.wantRows(`select last_value::text from calls`, "1") // it did get as far as the target

			operator.exec(c.reopen)
			w.pass()
			w.wantReceived(1)
			w.wantRows(`select concat_ws(' ', outcome, attempt_no) from tidemark.route_attempt`, "sent 1")
		})
	}
}

// slowTarget makes the receiver count its calls, in a way that no rollback takes back, and then wait for the
// advisory lock 1.
func (s session) slowTarget() {
	s.t.Helper()
	s.exec(`create sequence calls;
create or replace function receive(event jsonb) returns void language plpgsql as $$
begin
    perform nextval('calls');
    insert into received (event_id, n, key) values ((event ->> 'event_id')::uuid, (event -> 'payload' ->> 'n')::int, event ->> 'key');
    perform pg_advisory_xact_lock_shared(1);
end $$`)
}

// A gate is looked at before each wave, the first one of 100, not only at the end.
func TestClosedBetweenWaves(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, operator := live(t, db), open(t, db, "operator")
	w.exec(`select tidemark.emit('test', 'tick', jsonb_build_object('n', n)) from generate_series(1, 2500) n`)
	w.slowTarget()
	operator.exec(`select pg_advisory_lock(1)`)
	passed := make(chan summary)
	go func() { passed <- w.pass() }()
	operator.waitsFor(w)
	operator.exec(`select tidemark.gate_set('routes.enabled', false)`)
	operator.exec(`select pg_advisory_unlock(1)`)
	equal(t, "pass", <-passed, summary{Status: "closed", Gate: "routes.enabled"})
	w.wantRows(`select last_value::text from calls`, "100")
	w.wantRows(traces, untouched)
}

// RO5.
func TestStage(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "operator")
	const route = `select tidemark.route_set('app', '{"domain": "d", "target_kind": "notify", "target_ref": "a.b", "enabled": true, "dry_run": false}')`
	s.refused("TM008", "stage_set('live'", route)
	s.exec(`select tidemark.route_set('app', '{"domain": "d", "target_kind": "notify", "target_ref": "a.b", "enabled": true}')`)
	s.refused("TM008", "cannot be enabled and live", `select tidemark.route_set('app', '{"dry_run": false}')`)
	s.exec(`select tidemark.route_set('app', '{"enabled": false, "dry_run": false}')`)
	for _, change := range []string{
		route, `select tidemark.route_set('app', '{"enabled": true}')`, `update tidemark.outbound_route set enabled = true`,
		`update tidemark.outbound_route set enabled = true, dry_run = false`,
		`insert into tidemark.outbound_route (route_code, domain, target_kind, target_ref, enabled, dry_run) values ('b', 'd', 'sql', 'a.b', true, false)`,
	} {
		s.refused("TM008", "cannot be enabled and live", change)
	}
	s.wantRows(`select concat_ws(' ', route_code, enabled, dry_run) from tidemark.outbound_route`, "app f f")

	s.refused("TM005", "neither dry_run nor live", `select tidemark.stage_set('production', 'because')`)
	s.refused("TM005", "neither dry_run nor live", `select tidemark.stage_set(null, 'because')`)
	for _, reason := range []string{"null", "''", "'  '"} {
		s.refused("TM005", "needs a reason", `select tidemark.stage_set('live', `+reason+`)`)
	}
	s.refused("23514", "", `update tidemark.stage set stage = 'live'`) // not bound to a cluster
	s.wantRows(`select stage || ' ' || reason from tidemark.stage`, "dry_run installed")

	s.exec(`select tidemark.stage_set('live', 'signed off by ann')`)
	s.wantRows(`select concat_ws(' ', s.stage, s.system_identifier = c.system_identifier, s.database = current_database(), s.changed_by = session_user,
		s.changed_at > now() - interval '1 minute', s.reason, tidemark.armed()) from tidemark.stage s, pg_control_system() c`,
		"live t t t t signed off by ann t")
	s.wantRows(`select concat_ws(' ', actor = session_user, action, object, reason, before ->> 'stage', after ->> 'stage') from tidemark.audit where object like 'stage%'`,
		"t update stage live signed off by ann dry_run live")
	s.exec(route)

	// Back: what is live stays as it is and does not run; it may be changed, but not be made live again.
	s.exec(`select tidemark.stage_set('dry_run', 'drill')`)
	s.wantRows(`select concat_ws(' ', system_identifier, database, stage, tidemark.armed()) from tidemark.stage`, "dry_run f")
	s.exec(`select tidemark.route_set('app', '{"description": "changed"}')`)
	s.exec(`select tidemark.route_set('app', '{"enabled": false}')`)
	s.refused("TM008", "", `select tidemark.route_set('app', '{"enabled": true}')`)
	s.refused("23505", "", `insert into tidemark.stage default values`)
	s.refused("23514", "", `insert into tidemark.stage (singleton) values (false)`)
}

// Every change of a configuration row leaves who, what and why; no change leaves nothing.
func TestAuditOfRows(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "operator")
	s.exec(`select tidemark.domain_set('e')`)
	for table, c := range map[string]struct{ insert, update, remove, object string }{
		"domain":         {`(domain) values ('d')`, `description = 'x' where domain = 'd'`, `domain = 'd'`, "d"},
		"event_type":     {`(domain, type) values ('e', 't')`, `version = 2 where type = 't'`, `type = 't'`, "t"},
		"forbidden_key":  {`(key) values ('iban')`, `key = 'iban2' where key = 'iban'`, `key = 'iban2'`, "iban"},
		"setting":        {`(key, value) values ('k', 'a')`, `value = 'b' where key = 'k'`, `key = 'k'`, "k"},
		"heartbeat_kind": {`(kind) values ('Cron')`, `kind = 'Cron2' where kind = 'Cron'`, `kind = 'Cron2'`, "Cron"},
		"worker":         {`(worker) values ('w')`, `description = 'x' where worker = 'w'`, `worker = 'w'`, "w"},
		"outbound_route": {`(route_code, domain, target_kind, target_ref) values ('r', '*', 'sql', 'a.b')`, `stream = 'x' where route_code = 'r'`, `route_code = 'r'`, "r"},
	} {
		s.begin()
		s.exec(`create role tidemark_test_ann superuser; set session authorization tidemark_test_ann`)
		s.exec(`set local tidemark.reason = 'ticket 7'`)
		s.exec(fmt.Sprintf(`insert into tidemark.%s %s`, table, c.insert))
		s.exec(fmt.Sprintf(`update tidemark.%s set %s`, table, c.update))
		s.exec(fmt.Sprintf(`update tidemark.%s set %s`, table, strings.Replace(c.update, "'iban'", "'iban2'", 1))) // changes nothing
		s.exec(fmt.Sprintf(`set local tidemark.reason = ''; delete from tidemark.%s where %s`, table, c.remove))
		s.wantRows(fmt.Sprintf(`select concat_ws(' ', actor, action, split_part(object, ' ', 1), left(split_part(object, ' ', 2), %d), coalesce(reason, '-'), before is null, after is null)
			from tidemark.audit where object like '%s %%' and object <> 'domain e' order by id`, len(c.object), table),
			fmt.Sprintf("tidemark_test_ann insert %s %s ticket 7 t f", table, c.object),
			fmt.Sprintf("tidemark_test_ann update %s %s ticket 7 f f", table, c.object),
			fmt.Sprintf("tidemark_test_ann delete %s %s - f t", table, c.object))
		equal(t, table+": rows before and after in the middle", one[bool](s, fmt.Sprintf(`select (select after from tidemark.audit where object like '%[1]s %%' and object <> 'domain e' and action = 'insert')
			= (select before from tidemark.audit where object like '%[1]s %%' and action = 'update')`, table)), true)
		s.rollback()
	}
}

// What operators do by function is on record with the login's name, whatever role it has put on.
func TestAuditOfFunctions(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "operator")
	s.begin()
	s.exec(`create role tidemark_test_bob in role tidemark_admin; set session authorization tidemark_test_bob; set role tidemark_admin`)
	for _, call := range []string{
		`domain_set('d', '{"description": "x"}', 'why 1')`, `type_set('d', 't', '{"version": 2}', 'why 2')`, `worker_set('w', '{"hole_limit": 5}', 'why 3')`,
		`route_set('r', '{"domain": "d", "target_kind": "notify", "target_ref": "a.b"}', 'why 4')`, `gate_set('worker.w.enabled', true, 'why 5')`,
		`stage_set('live', 'why 6')`, `worker_rewind('w', 0, 'why 7')`,
	} {
		s.exec(`select tidemark.` + call)
	}
	s.exec(`reset role`)
	s.wantRows(`select distinct concat_ws(' ', actor, reason, object) from tidemark.audit order by 1`,
		"tidemark_test_bob why 1 domain d", "tidemark_test_bob why 2 event_type t", "tidemark_test_bob why 3 worker w",
		"tidemark_test_bob why 4 outbound_route r", "tidemark_test_bob why 5 setting worker.w.enabled",
		"tidemark_test_bob why 6 stage live", "tidemark_test_bob why 7 worker_cursor w")
	s.rollback()
}

func TestUnknownNames(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "operator")
	for _, gate := range []string{"'nope'", "'worker.nope.enabled'", "'worker.default'", "'ROUTES.ENABLED'", "null", "'outbox.retention'"} {
		s.refused("TM004", "there is no gate", `select tidemark.gate_set(`+gate+`, true)`)
		s.refused("TM004", "worker.<name>.enabled", `select tidemark.gate_set(`+gate+`, false)`)
	}
	for _, worker := range []string{"'nope'", "null", "''", "'Default'"} {
		s.refused("TM004", "select worker from tidemark.worker", `select tidemark.route_worker_run(`+worker+`)`)
		s.refused("TM004", "there is no worker", `select tidemark.worker_rewind(`+worker+`, 0, 'why')`)
	}
	s.refused("TM004", `there is no worker "nope"`, `select tidemark.route_set('r', '{"domain": "d", "target_kind": "notify", "target_ref": "a.b", "worker": "nope"}')`)
	s.refused("TM004", `there is no route "nope"`, `select tidemark.route_set('nope', '{"enabled": true}', may_create => false)`)
	s.refused("TM004", `there is no route "nope"`, `select tidemark.dead_letter_replay_many('nope')`)
	s.refused("TM004", "there is no dead letter 7", `select tidemark.dead_letter_replay(7)`)
	s.refused("TM004", "there is no dead letter 7", `select tidemark.dead_letter_discard(7, 'why')`)
	s.wantRows(`select object from tidemark.audit where action <> 'insert' or object like '%nope%'`)
}

func TestBatchLimits(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.emit(1)
	for _, limit := range []string{"0", "-1", "50001", "null", "2147483647"} {
		w.refused("TM005", fmt.Sprintf("batch_limit is %s, and must be from 1 to 50000", limit), `select tidemark.route_worker_run('default', `+limit+`)`)
	}
	w.wantRows(traces, untouched)
	w.wantRows(`select tidemark.route_worker_run('default', 50000) ->> 'events'`, "1")
	w.wantRows(`select tidemark.route_worker_run('default', 1) ->> 'events'`, "0")
}

func TestBadChanges(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "operator")
	s.exec(`select tidemark.route_set('r', '{"domain": "d", "target_kind": "notify", "target_ref": "a.b"}')`)
	for _, call := range []string{
		`domain_set('d', %s)`, `type_set('d', 't', %s)`, `worker_set('default', %s)`, `route_set('r', %s)`,
	} {
		s.refused("TM005", "not an object", fmt.Sprintf(`select tidemark.`+call, `'[]'`))
		s.refused("TM005", "is null, not an object", fmt.Sprintf(`select tidemark.`+call, `null`))
		s.refused("TM005", `has no column "colour"`, fmt.Sprintf(`select tidemark.`+call, `'{"colour": "red"}'`))
		s.refused("TM005", "description", fmt.Sprintf(`select tidemark.`+call, `'{"colour": "red"}'`))
	}
	for _, fixed := range []string{
		`worker_set('default', '{"id": 9}')`, `worker_set('default', '{"worker": "x"}')`, `route_set('r', '{"id": 9}')`, `route_set('r', '{"route_code": "x"}')`,
		`domain_set('d', '{"domain": "x"}')`, `type_set('d', 't', '{"domain": "x"}')`,
	} {
		s.refused("TM005", "that can be set", `select tidemark.`+fixed)
	}
	for _, missing := range []string{`{"target_kind": "notify", "target_ref": "a.b"}`, `{"domain": "d", "target_ref": "a.b"}`, `{"domain": "d", "target_kind": "sql"}`, `{}`} {
		s.refused("TM005", "route new is new and needs", `select tidemark.route_set('new', $1::text::jsonb)`, missing)
	}
	for _, policy := range []string{`[]`, `{"max_attempts": 0}`, `{"attempts": 3}`} {
		s.refused("TM005", "cannot be read", `select tidemark.route_set('r', jsonb_build_object('retry_policy', $1::text::jsonb))`, policy)
	}
	s.exec(`select tidemark.route_set('r', '{"retry_policy": {"max_attempts": 3}}'), tidemark.route_set('r', '{"retry_policy": null}')`)
	for _, broken := range []string{
		`{"type": "a*b"}`, `{"type": "order*"}`, `{"type": ""}`, `{"domain": "d*"}`, `{"key_filter": "a*b"}`, `{"key_filter": ""}`, `{"payload_filter": [1]}`,
		`{"ordering": "strict"}`, `{"concurrency": 0}`, `{"timeout": "0 seconds"}`, `{"domain": null}`,
	} {
		if err := s.try(`select tidemark.route_set('r', $1::text::jsonb)`, broken); err == nil || (err.Code != "23514" && err.Code != "23502") {
			t.Errorf("%s: %v", broken, err)
		}
	}
	s.refused("TM005", "", `select tidemark.gate_set('routes.enabled', null)`)
	s.refused("23514", "", `select tidemark.route_set('has blank', '{"domain": "d", "target_kind": "notify", "target_ref": "a.b"}')`)
	s.wantRows(`select route_code from tidemark.outbound_route`, "r")
}

// A session reads the server's control file once, and not in each pass: what identifies the cluster is a constant of a plan.
func TestSystemIdentifierIsPlanned(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "operator")
	s.wantRows(`select (tidemark.system_identifier() = c.system_identifier)::text from pg_control_system() c`, "true")
	for _, line := range column[string](s, `explain (verbose, costs off) select tidemark.system_identifier()`) {
		if strings.Contains(line, "system_identifier") {
			t.Errorf("it is called: %s", line)
		}
	}
}
