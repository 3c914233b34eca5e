package test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// healthy is live, and has been at work: three events delivered.
func healthy(t *testing.T) session {
	t.Helper()
	w := live(t, tidemarktest.NewDB(t))
	for n := range 3 {
		w.emit(n + 1)
	}
	w.pass()
	return w
}

// That the roles are shared is so on any server with many databases, as that of tests.
const complaints = `select concat_ws(' ', status, "check") || ': ' || detail from tidemark.verify()
	where status <> 'ok' and not ("check" = 'roles' and detail !~ 'tidemark_owner')`

// deadLetter leaves an open one for event 2. All of this is rolled back, so setval, which is not, will not do.
const anyTarget = `set local session_replication_role = replica; `

const deadLetter = `insert into tidemark.dead_letter (idempotency_key, worker_id, route_id, seq, event_id, event_snapshot, error_code)
	select 'k', 1, r.id, o.seq, o.event_id, '{}', 'P0001' from tidemark.outbound_route r, tidemark.outbox o where o.seq = 2`

// numbered is a source, orders a captured table, both as they should be.
const (
	numberedSource = `create table public.t (id bigint generated always as identity primary key); grant select on public.t to tidemark_executor;
		select tidemark.source_set('t', '{"table": "public.t", "id_column": "id", "safety": "sequence"}');`
	capturedOrders = `create table public.orders (id int primary key); select tidemark.inbound_route_set('orders',
		'{"source_schema": "public", "source_table": "orders", "sql_event": "insert", "domain": "test", "type": "tick", "enabled": true, "dry_run": false}', 'test');
		select tidemark.capture_attach('public.orders', 'test');`
)

// breaches say for each check what breaks it, and what it then says; and what else cannot but speak up.
var breaches = []struct{ check, how, says, also string }{
	{"W1 objects", `drop view tidemark.route_attempt`, "fail W1 objects: route_attempt missing", ""},
	{"W1 objects", `drop trigger outbox_no_truncate on tidemark.outbox`, "fail W1 objects: outbox_no_truncate missing", ""},
	{"W1 objects", `drop function tidemark.event_evidence(bigint)`, "fail W1 objects: event_evidence missing", ""},
	{"W2 gates", `select tidemark.gate_set('routes.enabled', false)`, "warn W2 gates: default closed by routes.enabled", ""},
	{"W2 gates", `delete from tidemark.setting where key = 'worker.default.enabled'`, "warn W2 gates: default closed by worker.default.enabled", ""},
	{"W2 gates", `update tidemark.worker_cursor set paused_at = now()`, "warn W2 gates: default closed by paused", ""},
	{"W3 workers", `insert into tidemark.worker (worker) values ('w')`, "fail W3 workers: w without cursor or heartbeat", ""},
	{"W3 workers", `delete from tidemark.heartbeat`, "fail W3 workers: default without cursor or heartbeat", ""},
	{"W4 cursor within the log", `update tidemark.worker_cursor set watermark_id = '4'`, "fail W4 cursor within the log: default at 4, last number 3", ""},
	{"W5 evidence without event", `set local session_replication_role = replica; delete from tidemark.outbox where seq = 2`, "fail W5 evidence without event: worker default: {[2,3)}", ""},
	{"W6 event without evidence", `update tidemark.decision set seqs = '{[1,2),[3,4)}', events = 2`, "fail W6 event without evidence: worker default: {[2,3)}", ""},
	{"W6 event without evidence", `select tidemark.emit('test', 'tick'); update tidemark.worker_cursor set watermark_id = '4'`, "fail W6 event without evidence: worker default: {[4,5)}", ""},
	{
		"W7 evidence twice", `insert into tidemark.decision (worker_id, route_id, last_seq, first_seq, events, outcome, seqs) select 1, id, 2, 2, 1, 'dry_run', '{[2,3)}' from tidemark.outbound_route`,
		"fail W7 evidence twice: worker 1, route 1", "",
	},
	{"W8 dead letters", deadLetter, "warn W8 dead letters: 1 open", ""},
	{"W9 failed without dead letter", `update tidemark.decision set seqs = '{[1,2)}', events = 1, last_seq = 1; insert into tidemark.attempt (seq, worker_id, route_id, attempt_no, outcome) select n, 1, id, 1, 'failed' from tidemark.outbound_route, generate_series(2, 3) n`, "fail W9 failed without dead letter: 2 attempts", ""},
	{"stage", `update tidemark.outbound_route set dry_run = true; update tidemark.stage set database = 'another'`, "fail stage: live for another cluster or database: disarmed", ""},
	{"stage", `update tidemark.outbound_route set dry_run = true; update tidemark.stage set system_identifier = 1`, "fail stage: live for another cluster or database: disarmed", ""},
	{"routes live only where armed", `select tidemark.stage_set('dry_run', 'drill')`, "fail routes live only where armed: app", "W2 gates"},
	{"route targets", `update tidemark.outbound_route set target_ref = 'public.gone'`, "fail route targets: app: there is no function public.gone(jsonb)", ""},
	{"route targets", anyTarget + `update tidemark.outbound_route set target_ref = 'no name at all ('`, "fail route targets: app: target_ref must be SCHEMA.FUNCTION, without arguments", ""},
	{"route targets", anyTarget + `update tidemark.outbound_route set target_kind = 'pigeon'`, `fail route targets: app: there is no kind of target "pigeon"`, ""},
	{"route targets", `update tidemark.outbound_route set retry_policy = '[]'`, "fail route targets: app: unreadable retry policy", ""},
	{"routes of types that exist", `update tidemark.outbound_route set type = 'tock.*'`, "warn routes of types that exist: app", ""},
	{"routes of types that exist", `update tidemark.outbound_route set domain = 'nowhere'`, "warn routes of types that exist: app", ""},
	{"sources", numberedSource + `alter table public.t rename to gone`, "fail sources: t: table: there is no table public.t", ""},
	{"sources", numberedSource + `alter table public.t drop constraint t_pkey`, "fail sources: t: id unique: nothing makes public.t.id unique", ""},
	{"sources", numberedSource + `revoke select on public.t from tidemark_executor; alter table public.t set unlogged`, "warn sources: t: cannot be proved or will cost: table, rights", ""},
	{"captures", capturedOrders + `alter table public.orders disable trigger all`, "fail captures: trigger tidemark_capture_insert of public.orders: it is disabled", ""},
	{"captures", capturedOrders + `select tidemark.capture_detach('public.orders', 'test')`, "fail captures: route orders: public.orders is not attached for insert", ""},
	{"captures", capturedOrders + `alter table public.orders drop constraint orders_pkey; select tidemark.capture_refresh()`, "warn captures: table public.orders: it has no primary key", ""},
	{"W2 gates", capturedOrders + `select tidemark.gate_set('routes.enabled', false)`, "warn W2 gates: default closed by routes.enabled", ""},
	{"pending", `insert into tidemark.pending (worker_id, route_id, seq, next_attempt_at) select 1, id, 2, now() - interval '2 minutes' from tidemark.outbound_route`, "warn pending: 1 deliveries wait for the daemon", ""},
	{"pending", `insert into tidemark.pending (worker_id, route_id, seq) select 1, id, 7 from tidemark.outbound_route`, "fail pending: 1 of events that are no longer in the log", ""},
	{"partitions", `drop table tidemark.outbox_p1000000`, "fail partitions: of numbers 1000000 to 1999999 only decision_p1000000, attempt_p1000000 is left", ""},
	{"partitions", `drop table tidemark.decision_p1000000`, "fail partitions: of numbers 1000000 to 1999999 only outbox_p1000000, attempt_p1000000 is left", ""},
	{"partitions", `alter sequence tidemark.outbox_seq_seq restart with 2500000; select nextval('tidemark.outbox_seq_seq')`, "warn partitions: no empty partition is left ahead", ""},
	{"partitions", `alter sequence tidemark.outbox_seq_seq restart with 4000000; select tidemark.emit('test', 'tick')`, "warn partitions: events have no partition of their own", ""},
	{"privileges", `grant execute on function tidemark.gate_set(text, boolean, text) to public`, "fail privileges: tidemark.gate_set(text,boolean,text) granted to PUBLIC", ""},
	{"privileges", `grant select on tidemark.setting to public`, "fail privileges: tidemark.setting granted to PUBLIC", ""},
	{"privileges", `grant usage on sequence tidemark.outbox_seq_seq to public`, "fail privileges: tidemark.outbox_seq_seq granted to PUBLIC", ""},
	{"triggers", `alter table tidemark.setting disable trigger setting_audit`, "fail triggers: setting_audit disabled", ""},
	{"heartbeats", `update tidemark.heartbeat set last_beat_at = now() - interval '1 hour'`, "warn heartbeats: default/outbox/0 silent since ", ""},
	{"statistics of other sessions", `revoke pg_read_all_stats from tidemark_owner`, "warn statistics of other sessions: tidemark_owner cannot read them", ""},
	{
		"statistics of other sessions", `select tidemark.worker_set('t', '{"source": "table", "handler": "go", "replication_lag_limit": "30 seconds"}'); revoke pg_read_all_stats from tidemark_owner`,
		"warn statistics of other sessions: tidemark_owner cannot read them: tables cannot be sources with safety clock, and blame lacks ages; replication_lag_limit sees no standby: t", "",
	},
	{"roles", `alter role tidemark_owner login`, "warn roles: ", ""},
	{"services", `select tidemark.service_set('verified'); alter role tidemark_service_verified login`, "fail services: role tidemark_service_verified of service verified can log in", ""},
	{"services", `select tidemark.service_set('verified'); grant pg_monitor to tidemark_service_verified`, "warn services: role tidemark_service_verified of service verified is a member of pg_monitor", ""},
	{"findings", `insert into tidemark.finding (kind, subject, severity, detail) values ('cursor_holes', 'default', 'high', 'stuck')`, "warn findings: cursor_holes default: stuck", ""},
}

// RW12: each check sees what it is there for, and nothing else does.
func TestVerifySeesEachBreach(t *testing.T) {
	t.Parallel()
	w := healthy(t)
	w.wantRows(complaints)
	broken := map[string]bool{}
	for _, b := range breaches {
		broken[b.check] = true
		w.begin()
		w.exec(b.how)
		got := slices.DeleteFunc(column[string](w, complaints), func(line string) bool {
			return b.also != "" && strings.Contains(line, b.also)
		})
		if len(got) != 1 || !strings.HasPrefix(got[0], b.says) {
			t.Errorf("%s\ngot  %q\nwant %q", b.how, got, b.says)
		}
		w.wantRows(`select "check" from tidemark.verify() where (status <> 'ok') <> (hint <> '') or (status <> 'ok') <> (detail <> '') or status not in ('ok', 'warn', 'fail')`)
		w.rollback()
	}
	w.wantRows(complaints)
	for _, check := range column[string](w, `select "check" from tidemark.verify()`) {
		if !broken[check] {
			t.Errorf("no breach is tried against %q", check)
		}
	}
	equal(t, "checks", one[int](w, `select count(distinct "check") from tidemark.verify()`), len(broken))
}

// Nothing of this is wrong.
func TestVerifyIsNotAlarmed(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]string{
		"a fresh install with open gates": `select tidemark.stage_set('dry_run', 'x'); delete from tidemark.decision; delete from tidemark.outbound_route;
			set local session_replication_role = replica; delete from tidemark.outbox; update tidemark.worker_cursor set watermark_id = '0', decided_through = '0'; update tidemark.heartbeat set last_beat_at = null`,
		"events that wait":             `select tidemark.emit('test', 'tick') from generate_series(1, 10)`,
		"numbers that were lost":       `select setval('tidemark.outbox_seq_seq', 1000); select tidemark.emit('test', 'tick')`,
		"a route that is off":          anyTarget + `update tidemark.outbound_route set enabled = false, target_kind = 'pigeon', domain = 'nowhere'`,
		"a route for all types":        `update tidemark.outbound_route set domain = '*', type = '*'`,
		"a dry run before go-live":     `update tidemark.outbound_route set dry_run = true; select tidemark.stage_set('dry_run', 'x')`,
		"a quoted target":              `create schema "Odd Name"; create function "Odd Name"."Do.it"(jsonb) returns void language sql as ''; update tidemark.outbound_route set target_ref = '"Odd Name"."Do.it"'`,
		"a rewound cursor":             `select tidemark.worker_rewind('default', 0, 'x')`,
		"a resolved dead letter":       deadLetter + `; update tidemark.dead_letter set resolved_at = now(), resolution = 'sent', resolved_by = 'x'`,
		"a failure with dead letter":   deadLetter + `; update tidemark.decision set seqs = '{[1,2),[3,4)}', events = 2; insert into tidemark.attempt (seq, worker_id, route_id, attempt_no, outcome) select 2, 1, id, 1, 'failed' from tidemark.outbound_route; update tidemark.dead_letter set resolved_at = now(), resolution = 'discarded', resolved_by = 'x'`,
		"a closed finding":             `insert into tidemark.finding (kind, subject, severity, detail, closed_at) values ('x', 'y', 'high', 'z', now())`,
		"a delivery that is young":     `insert into tidemark.pending (worker_id, route_id, seq) select 1, id, 2 from tidemark.outbound_route`,
		"a worker with its domains":    `select tidemark.worker_set('w', '{"domains": ["other"]}'), tidemark.gate_set('worker.w.enabled', true); update tidemark.worker_cursor set watermark_id = '3' where worker = 'w'`,
		"a partition past retention":   `drop table tidemark.outbox_p0, tidemark.decision_p0, tidemark.attempt_p0; select setval('tidemark.outbox_seq_seq', 1000000); select tidemark.emit('test', 'tick')`,
		"a source":                     numberedSource,
		"a captured table":             capturedOrders,
		"evidence of a second attempt": `insert into tidemark.attempt (seq, worker_id, route_id, attempt_no, outcome) select 2, 1, id, 2, 'sent' from tidemark.outbound_route`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := healthy(t)
			w.begin()
			w.exec(how)
			w.wantRows(complaints)
			w.rollback()
		})
	}
}

// Events that the cursor has passed and looks out for are not missing.
func TestVerifyKnowsHoles(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, a := live(t, db), open(t, db, "a")
	a.begin()
	a.emit(1)
	w.emit(2)
	w.pass()
	a.commit()
	w.wantRows(complaints)
	w.exec(`update tidemark.worker_cursor set fenced = '{}'`)
	w.wantRows(complaints, "fail W6 event without evidence: worker default: {[1,2)}")
}

func TestVerifyOnlyReads(t *testing.T) {
	t.Parallel()
	w := healthy(t)
	w.exec(`begin isolation level repeatable read read only`)
	w.wantRows(complaints)
	w.commit()
	w.wantRows(`select provolatile::text from pg_proc where oid = 'tidemark.verify()'::regprocedure`, "s")
}

func TestWorkerHealth(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w, a := live(t, db), open(t, db, "a")
	const health = `select concat_ws(' ', worker, status, coalesce(gate, '-'), watermark, last_seq, behind, holes, open_dead_letters, pending) from tidemark.worker_health`
	w.wantRows(health, "default never ran - 0 0 0 0 0 0")
	w.pass()
	w.wantRows(health, "default idle - 0 0 0 0 0 0")
	a.begin()
	a.emit(1)
	w.emit(2)
	w.wantRows(health, "default behind - 0 2 2 0 0 0")
	w.pass()
	w.wantRows(health, "default idle - 2 2 0 1 0 0")
	w.exec(`select tidemark.gate_set('routes.enabled', false)`)
	w.wantRows(health, "default closed routes.enabled 2 2 0 1 0 0")
	w.exec(`select tidemark.gate_set('routes.enabled', true), tidemark.worker_set('default', '{"hole_limit": 1}')`)
	a.exec(`savepoint s`)
	w.emit(3)
	w.pass()
	w.wantRows(health, "default blocked - 2 3 1 1 0 0")
	a.rollback()
	w.drain()
	w.wantRows(health, "default idle - 3 3 0 0 0 0")
	w.allowAnyTarget()
	w.exec(`select tidemark.route_set('hook', '{"domain": "test", "target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}, "enabled": true, "dry_run": false}'),
		tidemark.route_set('bad', '{"domain": "test", "target_kind": "pigeon", "target_ref": "x", "enabled": true, "dry_run": false}')`)
	w.emit(4)
	w.pass()
	w.wantRows(health, "default idle - 4 4 0 0 1 1")
}

// A worker that gets another domain has no evidence for what it read before. A page that it had read and not settled is read again. Later
// events it owes.
func TestVerifyKnowsNewDomains(t *testing.T) {
	t.Parallel()
	db := tidemarktest.NewDB(t)
	w := live(t, db)
	w.exec(`select tidemark.type_set('other', 'tick'), tidemark.type_set('third', 'tick')`)
	emit := func() {
		w.exec(`select tidemark.emit_strict(d, 'tick', '{"n": 1}') from unnest(array['test', 'other', 'third']) d`)
	}
	w.exec(`select tidemark.worker_set('default', '{"domains": ["test"]}')`)
	emit()
	w.exec(`select tidemark.claim('default', 'me', '1 hour'); create table page as select * from tidemark.pass_read('default', 1, 9, null, null, '{}', '{}');
		select tidemark.worker_set('default', '{"domains": ["test", "other"]}')`)
	w.refused("TM011", "epoch 1 is over", `select tidemark.pass_settle('default', 1, p.batch::tidemark.batch, p.evidence::tidemark.evidence[], '{}', 1) ->> 'status'
		from page p where p.batch is not null`)
	w.exec(`select tidemark.release('default', 2)`)
	w.pass()
	w.wantRows(complaints)
	emit()
	w.pass()
	w.exec(`select tidemark.worker_set('default', '{"domains": null}')`)
	w.wantRows(complaints)
	emit()
	w.pass()
	w.wantRows(complaints)

	// What it is given now is owed, and what is taken from it is not.
	w.exec(`select tidemark.worker_set('default', '{"domains": ["other"]}')`)
	w.exec(`delete from tidemark.decision where seqs && '{[7,10)}'`)
	w.wantRows(complaints, "fail W6 event without evidence: worker default: {[8,9)}")
}

// A domain that is taken from a paused worker and given again loses nothing: the cursor stays, and of what it read before no evidence
// is asked for.
func TestDomainGivenAgainToAPausedWorker(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`select tidemark.type_set('other', 'tick'); select tidemark.worker_set('default', '{"domains": ["test"]}')`)
	emit := func() {
		w.exec(`select tidemark.emit_strict(d, 'tick', '{"n": 1}') from unnest(array['test', 'other']) d`)
	}
	emit()
	w.pass()
	w.exec(`select tidemark.worker_set('default', '{"domains": ["test", "other"]}'); update tidemark.worker_cursor set begins_after = 0 where worker = 'default'`)
	w.wantRows(complaints, "fail W6 event without evidence: worker default: {[2,3)}")
	w.exec(`select tidemark.worker_pause('default', true, 'x'); select tidemark.worker_set('default', '{"domains": ["test"]}')`)
	emit()
	w.wantRows(`select r ->> 'status' from tidemark.route_worker_run() r`, "closed")
	w.exec(`select tidemark.worker_set('default', '{"domains": ["test", "other"]}'), tidemark.worker_pause('default', false, 'x')`)
	w.pass()
	w.wantRows(complaints)
	w.wantRows(`select worker from tidemark.event_evidence(4)`, "default")
}
