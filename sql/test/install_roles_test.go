package test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// SE1. Roles by their initials: reader, emitter, executor (x), admin (a). Everything is tried by each of them,
// and by a role without grants.
var roles = map[string]string{"r": "tidemark_reader", "e": "tidemark_emitter", "x": "tidemark_executor", "a": "tidemark_admin", "-": "tidemark_test_nobody"}

// mayDo says who may.
var mayDo = map[string][]string{
	"e a": {
		`select tidemark.emit('test', 'tick')`,
		`select tidemark.emit_strict('test', 'tick')`,
		`select tidemark.emit_many('[]')`, `select tidemark.emit_many_strict('[]')`,
	},
	"r e x a": {
		`select * from tidemark.domain`,
		`select * from tidemark.event_type`,
		`select * from tidemark.forbidden_key`,
		`select * from tidemark.migration`,
		`select * from tidemark.code`,
	},
	"r x a": {
		`select * from tidemark.setting`, `select * from tidemark.stage`, `select * from tidemark.worker`, `select * from tidemark.outbound_route`,
		`select * from tidemark.heartbeat`, `select * from tidemark.heartbeat_kind`, `select * from tidemark.worker_cursor`,
		`select * from tidemark.decision`, `select seq, outcome, reason from tidemark.attempt`, `select seq, error_count from tidemark.pending`,
		`select * from tidemark.domain_emitter`, `select * from tidemark.letter_detail`,
		`select * from tidemark.finding`, `select * from tidemark.finding_detail`, `select * from tidemark.audit`, `select * from tidemark.pack`,
		`select * from tidemark.route_attempt`, `select * from tidemark.worker_health`,
		`select * from tidemark.queue_health`, `select * from tidemark.heartbeat_health`, `select * from tidemark.cursor_lag`,
		`select * from tidemark.worker_summary`, `select * from tidemark.route_summary`, `select * from tidemark.river_health()`,
		`select * from tidemark.silence`, `select * from tidemark.cursor_sample`, `select * from tidemark.storage_sample`, `select * from tidemark.clock_step`, `select * from tidemark.route_minute`, `select * from tidemark.log_minute`,
		`select * from tidemark.service`, `select * from tidemark.command`, `select * from tidemark.command_producer`, `select * from tidemark.producer_key`, `select * from tidemark.command_reason`,
		`select state, error_code from tidemark.command_claim`, `select error_count from tidemark.command_parked`, `select why, topic from tidemark.command_record`, `select tidemark.canonical_json('{}')`,
		`select id, error_code, resolution_reason from tidemark.dead_letter`,
		`select * from tidemark.emit_unregistered`, `select * from tidemark.unregistered_type`, `select * from tidemark.unregistered_emits`, `select * from tidemark.inbound_route`, `select * from tidemark.captured`, `select * from tidemark.capture_checkpoint`, `select * from tidemark.capture_gap`,
		`select * from tidemark.capture_list`, `select * from tidemark.capture_attached`,
		`select * from tidemark.event_evidence(1)`, `select tidemark.event_seq(gen_random_uuid())`,
		`select last_value from tidemark.outbox_seq_seq`,
		`select seq, event_id, created_at, domain, type, stream, key, actor, idempotency_key from tidemark.outbox`,
		`select tidemark.armed(), tidemark.gate_open('x'), tidemark.closed_gate('default'), tidemark.closed_delivery('default', 'd', null)`,
		`select tidemark.pattern_matches('a', 'a'), tidemark.retry_policy_ok('{}'), tidemark.uuid_time(gen_random_uuid())`,
		`select * from tidemark.decide('default', null, '{}', row(true, true, true, null))`,
		`select * from tidemark.worker_outlook('default')`,
		`select * from tidemark.sources`, `select * from tidemark.source_cursor`, `select * from tidemark.waiting`,
		`select * from tidemark.cause`, `select * from tidemark.watcher`, `select * from tidemark.capture_columns('pg_class', '{}')`,
		`select * from tidemark.source_check(jsonb_populate_record(null::tidemark.source, '{"schema_name": "a", "table_name": "b"}'))`,
		`select * from tidemark.source_advise(jsonb_populate_record(null::tidemark.source, '{"schema_name": "a", "table_name": "b"}'))`,
	},
	"r a": {
		`select * from tidemark.verify()`,
		`select * from tidemark.partitions('tidemark.outbox')`,
		`select * from tidemark.capture_check()`, `select * from tidemark.capture_stale`,
		`select tidemark.forbidden_key_in('{}'), tidemark.payload_error('{}', null)`,
	},
	"x a": {
		`select * from tidemark.finding_message`,
		`select * from tidemark.attempt`, `select * from tidemark.pending`, `select error_detail from tidemark.dead_letter`,
		`select tidemark.route_worker_run()`, `select * from tidemark.claim('default')`, `select tidemark.read_outbox('default', 1)`,
		`select tidemark.dead_letter_replay(1)`, `select tidemark.dead_letter_replay(1, true)`, `select tidemark.dead_letter_replay_many()`,
		`select * from tidemark.maintain()`, `select * from tidemark.events('{1}')`, `select payload from tidemark.outbox`,
		`select fingerprint from tidemark.command_claim`, `select * from tidemark.command_claim`, `select * from tidemark.command_parked`, `select * from tidemark.command_record`, `select * from tidemark.command_retry(0)`,
		`select * from tidemark.watch('d/1', false)`, `select * from tidemark.watch()`, `select * from tidemark.letters_unlogged(1)`,
		`select tidemark.transformed(null, null, '{}', '')`, `select tidemark.transform_try(null, '{}', '{}', '')`, `select tidemark.dry_run_transform('r')`, `select tidemark.dry_run_untried(0, 1)`, `select tidemark.dry_run_tried(0, 0, 0, '{}', '{}', '{}', '{}', '{}')`, `select tidemark.payload_limit()`,
		`select * from tidemark.stale_check()`, `select tidemark.heartbeat_daemon('d')`, `select tidemark.heartbeat_write('x')`,
	},
	"a": {
		`select event_snapshot from tidemark.dead_letter`,
		`select tidemark.gate_set('routes.enabled', true)`, `select tidemark.stage_set('live', 'why')`,
		`select tidemark.domain_set('d')`, `select tidemark.domain_grant('no such', 'x')`, `select tidemark.domain_revoke('no such', 'x')`, `select tidemark.type_set('test', 'tick')`, `select tidemark.worker_set('w')`,
		`select tidemark.route_set('r', '{"domain": "test", "target_kind": "notify", "target_ref": "a.b"}')`,
		`select tidemark.command_set('no such', 'c', 1)`, `select tidemark.command_allow('no such', 'p')`, `select tidemark.command_disallow('no such', 'p')`, `select tidemark.command_discard('no such', 'k', 'why')`,
		`select tidemark.producer_key_add('k', 'no such', 'p', '{}')`, `select tidemark.producer_key_revoke('k', 'why')`,
		`select tidemark.worker_rewind('default', 0, 'why')`, `select tidemark.dead_letter_discard(1, 'why')`,
		`select tidemark.source_delete('x', 'why')`, `select tidemark.lock_blame('tidemark.setting')`,
		`select tidemark.inbound_route_set('r', '{"source_schema": "a", "source_table": "b", "sql_event": "insert", "domain": "test", "type": "b"}')`,
		`update tidemark.inbound_route set enabled = false`, `select * from tidemark.capture_reconcile()`, `select tidemark.capture_record('capture_attach', 'pg_class', 'why', '{}')`,
		`insert into tidemark.domain (domain) values ('d')`, `update tidemark.event_type set enabled = false`,
		`insert into tidemark.forbidden_key (key) values ('iban')`, `delete from tidemark.forbidden_key where key = 'raw'`,
		`insert into tidemark.setting (key, value) values ('k', 'v')`, `update tidemark.outbound_route set enabled = false`,
		`select tidemark.heartbeat_register('x')`, `select tidemark.heartbeat_deregister('x')`, `select tidemark.finding_ack(1, 'x')`, `select tidemark.capture_gap_accept(1, 'x')`, `select * from tidemark.capture_gap_emit(1)`, `select tidemark.capture_gap_write(1, null, true, '')`, `select tidemark.capture_gap_keep(1, '{}')`, `select * from tidemark.clock_settle('x')`,
		`update tidemark.worker set description = 'x'`, `insert into tidemark.heartbeat_kind (kind) values ('k')`,
	},
	"": {
		// The log, its numbers and the keys are emit's.
		`insert into tidemark.outbox (event_id, created_at, occurred_at, lane, severity, domain, type, actor, payload)
			values (gen_random_uuid(), now(), now(), 'batch', 'info', 'test', 'tick', 'x', '{}')`,
		`update tidemark.outbox set actor = 'x'`, `delete from tidemark.outbox`, `truncate tidemark.outbox`,
		`select * from tidemark.outbox_p0`, `insert into tidemark.outbox_rest default values`, `lock table tidemark.outbox in row exclusive mode`,
		`select nextval('tidemark.outbox_seq_seq')`, `select setval('tidemark.outbox_seq_seq', 1)`, `select * from tidemark.emit_key`, `delete from tidemark.emit_key`,
		// Evidence and cursors are the worker's functions'.
		`insert into tidemark.decision (worker_id) values (1)`, `update tidemark.attempt set outcome = 'sent'`, `delete from tidemark.attempt`, `select * from tidemark.attempt_p0`,
		`delete from tidemark.pending`, `update tidemark.dead_letter set attempts = 0`, `delete from tidemark.dead_letter`,
		`update tidemark.worker_cursor set watermark_id = '0'`, `update tidemark.heartbeat set lease_epoch = 0`, `insert into tidemark.finding (kind) values ('x')`,
		// What was done stays on record.
		`insert into tidemark.audit (action, object) values ('x', 'y')`, `update tidemark.audit set actor = 'x'`, `delete from tidemark.audit`,
		`update tidemark.stage set reason = 'x'`, `delete from tidemark.stage`, `delete from tidemark.setting`, `delete from tidemark.outbound_route`, `delete from tidemark.worker`,
		`insert into tidemark.captured default values`, `delete from tidemark.captured`, `delete from tidemark.inbound_route`, `select tidemark.capture_fits(1, '')`,
		`update tidemark.migration set checksum = 'x'`, `delete from tidemark.code`, `alter table tidemark.outbound_route disable trigger all`,
		`create table tidemark.mine (n int)`, `create or replace function tidemark.gate_open(gate text) returns boolean language sql as 'select true'`,
		`insert into tidemark.service default values`, `update tidemark.command set enabled = true`, `delete from tidemark.command_claim`, `insert into tidemark.command_producer default values`,
		`update tidemark.producer_key set revoked_at = null`, `delete from tidemark.command_parked`, `delete from tidemark.command_record`, `update tidemark.command_reason set class = 'x'`,
		// Inner functions.
		`select tidemark.command_try('{}')`, `select tidemark.command_publish('result', '{}', '{}')`, `select tidemark.command_release('{s}', '{k}')`, `select tidemark.command_reject('{}', 'c', 'm', null)`,
		`select tidemark.emit_all('[]', false, true)`, `select tidemark.own_key_check('d', 'k', '')`, `select tidemark.emit_noted('d', 't', 1)`, `select tidemark.capture_gap_open(null)`, `select tidemark.capture_gap_resolve(null, 'emitted', '')`, `select tidemark.emit_findings()`, `insert into tidemark.emit_unregistered default values`,
		`select tidemark.event_check('', '{}', null, null, null, null, null, null, null)`, `select tidemark.event_is_small('{}', null, null, null, null, null, null, null)`,
		`select tidemark.payload_check('d', 't', '{}', null, false, '')`, `select tidemark.event_uuid(now())`, `select tidemark.finding_open('a', 'b', 'info', 'c')`,
		`select tidemark.finding_close('a', 'b')`, `select tidemark.fence_now()`, `select tidemark.fence_closed('{}')`, `select tidemark.fence_blame('{}')`,
		`select tidemark.partition_add(0, 1)`, `select tidemark.partition_absorb(0, 1)`,
		`select tidemark.system_event('queue_worker_silent', 'info', 'a', 'b', '{}')`, `select tidemark.lag_findings()`, `select tidemark.finding_event('finding_opened', null)`, `update tidemark.watcher set until = null`,
		`select tidemark.is_cursor('x')`, `select tidemark.heartbeat_payload_check('x', '{}')`,
		`insert into tidemark.silence values ('x')`, `update tidemark.finding set acked_at = now()`, `insert into tidemark.heartbeat (executor_id) values ('x')`,
	},
}

func TestRoles(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "superuser")
	s.exec(receiver)
	s.exec(`select tidemark.emit('test', 'tick')`)
	s.begin()
	s.exec(`create role tidemark_test_nobody`)
	for allowed, statements := range mayDo {
		for _, statement := range statements {
			for initial, role := range roles {
				s.exec(`savepoint one; set local role ` + role)
				err := s.try(statement)
				s.exec(`rollback to savepoint one`)
				refused := err != nil && err.Code == "42501"
				if want := !slices.Contains(strings.Fields(allowed), initial); refused != want {
					t.Errorf("%s: %s: refused is %t, want %t (%v)", role, statement, refused, want, err)
				}
				if err != nil && !strings.Contains("42501 TM004 22023", err.Code) {
					t.Errorf("%s: %s: %v: proves nothing", role, statement, err)
				}
			}
		}
	}
}

// Each role does its whole work with nothing but its grants.
func TestRolesAtWork(t *testing.T) {
	t.Parallel()
	s := open(t, tidemarktest.NewDB(t), "superuser")
	s.exec(`
create table received (at bigint generated always as identity, n int, by name);
create function public.receive(event jsonb) returns void language plpgsql as $$
begin
    if (event -> 'payload' ->> 'n')::int = 13 and not exists (select from received where n = 1) then raise 'unlucky'; end if;
    if (event -> 'payload' ->> 'n')::int = 14 then raise 'never'; end if;
    insert into received (n, by) values ((event -> 'payload' ->> 'n')::int, current_user);
end $$;
grant select, insert on received to tidemark_executor;`)
	s.exec(`set role tidemark_admin`)
	s.exec(receiver[:strings.Index(receiver, "create table")]) // the type
	s.exec(`select tidemark.domain_set('test', '{"metadata_only": true}'), tidemark.stage_set('live', 'go'), tidemark.gate_set('routes.enabled', true), tidemark.gate_set('worker.default.enabled', true);
		select tidemark.route_set('app', '{"domain": "test", "target_kind": "sql", "target_ref": "public.receive", "enabled": true, "dry_run": false}');
		select tidemark.route_set('hook', '{"domain": "test", "target_kind": "webhook", "target_ref": "https://example.com/hook", "options": {"unsigned": true}, "payload_filter": {"n": 1}, "enabled": true, "dry_run": false}');
		select tidemark.worker_rewind('default', 0, 'drill')`)
	s.exec(`set role tidemark_emitter`)
	s.exec(`select tidemark.emit('test', 'tick', '{"n": 13}', idempotency_key => 'a'), tidemark.emit_strict('test', 'tick', '{"n": 14}')`)
	s.exec(`select tidemark.emit_many('[{"domain": "test", "type": "tick", "payload": {"n": 1}, "idempotency_key": "b"}]')`)
	s.exec(`set role tidemark_executor`)
	equal(t, "pass", s.pass().Decided, map[string]int{"sent": 1, "failed": 2, "pending": 1})
	s.wantRows(`select concat_ws(' ', id, outcome, detail) from tidemark.dead_letter_replay_many() order by id`, "1 sent", "2 failed never")
	s.exec(`select tidemark.maintain()`)
	s.exec(`set role tidemark_reader`)
	s.wantRows(`select "check" || ' ' || detail from tidemark.verify() where status <> 'ok' and "check" <> 'roles'`, "W8 dead letters 1 open", "findings cursor_dlq default: 2 more dead-lettered; see tidemark.dead_letter")
	s.wantRows(`select concat_ws(' ', status, open_dead_letters, pending) from tidemark.worker_health`, "idle 1 1")
	s.wantRows(`select concat_ws(' ', route_code, seq, attempt_no, outcome) from tidemark.route_attempt order by seq, route_code, attempt_no`,
		"app 1 1 failed", "app 1 2 sent", "app 2 1 failed", "app 2 2 failed", "app 3 1 sent", "hook 3 1 pending")
	s.exec(`set role tidemark_admin`)
	s.exec(`select tidemark.dead_letter_discard(2, 'unlucky for ever')`)
	s.exec(`reset role`)
	// An SQL target has the rights of the role that runs the worker, not of the log's owner.
	s.wantRows(`select concat_ws(' ', n, by) from received order by at`, "1 tidemark_executor", "13 tidemark_executor")
}

// A target that the worker's role may not call is the event's failure, not a way around the grants.
func TestTargetWithoutGrant(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`revoke all on function public.receive(jsonb) from public`)
	w.emit(1)
	w.exec(`set role tidemark_executor`)
	w.pass()
	w.exec(`reset role`)
	w.wantReceived()
	w.wantRows(`select concat_ws(' ', error_code, error_detail) from tidemark.dead_letter`, "42501 permission denied for function receive")
}

// A schema that the roles may not enter: the worker goes on, and verify answers.
func TestTargetInAClosedSchema(t *testing.T) {
	t.Parallel()
	w := live(t, tidemarktest.NewDB(t))
	w.exec(`create schema closed; create function closed.receive(event jsonb) returns void language sql as '';
		select tidemark.route_set('closed', '{"domain": "test", "target_kind": "sql", "target_ref": "closed.receive", "enabled": true, "dry_run": false}');
		grant insert on received to tidemark_executor`)
	w.emit(1)
	w.exec(`set role tidemark_executor`)
	equal(t, "decided", w.pass().Decided, map[string]int{"sent": 1, "failed": 1})
	w.exec(`set role tidemark_reader`)
	w.wantRows(`select "check" from tidemark.verify() where status <> 'ok' and "check" <> 'roles'`, "W8 dead letters", "findings")
	w.exec(`reset role`)
	w.wantReceived(1)
	w.wantRows(letters, "closed 1 42501 1 open")
}
