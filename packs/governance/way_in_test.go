package governance_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/tidemarkhq/tidemark/tidemarktest"
)

// oldOutbox is an event_outbox as the source documents describe it: id uuid, created_at, no delivery state, mostly
// system/alert; an index for immediate idempotency; the columns of fn_iu_emit_event.
const oldOutbox = `
create table event_outbox (
	id uuid primary key default gen_random_uuid(),
	event_domain text not null, event_type text not null, event_stream text,
	delivery_lane text not null default 'immediate', event_severity text not null default 'info',
	event_subject_table text, event_subject_ref text, canonical_address text, actor_ref text not null default 'system',
	safe_payload jsonb not null default '{}' check (not safe_payload ?| array['body', 'content', 'raw', 'secret', 'password']),
	occurred_at timestamptz not null default clock_timestamp(),
	created_at timestamptz not null default clock_timestamp());
create index on event_outbox (created_at, id);
create unique index on event_outbox (event_domain, event_type, event_subject_ref, occurred_at) where delivery_lane = 'immediate';
create function only_inserts() returns trigger language plpgsql as $$ begin raise exception 'event_outbox is append only'; end $$;
create trigger only_inserts before update or delete or truncate on event_outbox for each statement execute function only_inserts();
grant select on event_outbox to tidemark_executor`

func newWayIn(t *testing.T) govern {
	t.Helper()
	test := tidemarktest.NewDB(t)
	install(t, test)
	g := govern{test, t, test.Connect(t)}
	g.exec(oldOutbox)
	return g
}

// The page docs/source-names.md, step by step.
func TestWayIn(t *testing.T) {
	t.Parallel()
	g := newWayIn(t)
	g.exec(`insert into event_outbox (event_domain, event_type, event_stream, event_severity, event_subject_table, event_subject_ref, actor_ref, safe_payload, occurred_at, created_at)
		select 'system', 'alert', 'alert', 'high', 'queue', 'q' || n % 3, 'watchdog', jsonb_build_object('n', n), now() - n * interval '1 minute', now() - n * interval '1 minute'
		from generate_series(1, 40) n;
		insert into event_outbox (event_domain, event_type, event_stream, delivery_lane, event_subject_table, event_subject_ref, actor_ref, safe_payload, occurred_at, created_at)
		select 'iu', 'unit_created', 'lifecycle', 'batch', 'unit', 'u' || n, 'dieu44', jsonb_build_object('unit_id', 'u' || n), timestamptz '2026-05-01 10:00+02' + n * interval '1 s',
			now() - interval '1 hour' + n * interval '1 second' from generate_series(1, 68) n`)

	g.exec(`select tidemark.domain_set(d) from (select distinct event_domain from event_outbox where event_domain <> 'system' union select 'old_system') x (d);
		select tidemark.type_set(d, event_type) from (select distinct case event_domain when 'system' then 'old_system' else event_domain end, event_type from event_outbox) x (d, event_type);
		select governance.bring_in('event_outbox', domains => '{"system": "old_system"}', reason => 'the way in')`)
	g.exec(`select tidemark.gate_set('worker.event_outbox_in.enabled', true), tidemark.gate_set('routes.enabled', true)`)
	g.drain("event_outbox_in")
	g.want("iu/unit_created 68, old_system/alert 40", `select string_agg(format('%s/%s %s', domain, type, n), ', ' order by domain) from (select domain, type, count(*) as n from tidemark.outbox group by 1, 2) x`)
	var got map[string]any
	if err := g.conn.QueryRow(t.Context(), `select to_jsonb(o) - 'seq' - 'event_id' - 'created_at' - 'idempotency_key' from tidemark.outbox o where key = 'u7'`).Scan(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{
		"domain": "iu", "type": "unit_created", "stream": "lifecycle", "lane": "batch", "severity": "info", "key": "u7", "subject_table": "unit",
		"subject_ref": "u7", "trace": nil, "actor": "dieu44", "emitted_by": "postgres", "inbound_id": nil, "payload": map[string]any{"unit_id": "u7"}, "occurred_at": "2026-05-01T08:00:07+00:00",
	}, got); diff != "" {
		t.Error(diff)
	}
	// Each row is one event, in the order of the table.
	g.want(108, `select count(*) from event_outbox e join tidemark.outbox o on o.idempotency_key = 'event_outbox/public.event_outbox/' || e.id`)
	g.want(0, `with n as (select o.seq, row_number() over (order by e.created_at, e.id) as n, row_number() over (order by o.seq) as m
		from event_outbox e join tidemark.outbox o on o.idempotency_key = 'event_outbox/public.event_outbox/' || e.id) select count(*) from n where n <> m`)

	// Read again, nothing comes twice; what is committed late comes.
	late := g.Connect(t)
	tx, err := late.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const event = `insert into event_outbox (event_domain, event_type, event_subject_ref, created_at) values ('iu', 'unit_created', $1, clock_timestamp())`
	if _, err := tx.Exec(t.Context(), event, "late"); err != nil {
		t.Fatal(err)
	}
	g.exec(event, "early")
	g.exec(`select tidemark.source_rewind('event_outbox_in', 'event_outbox_in', 'again', to_ts => '2020-01-01')`)
	g.drain("event_outbox_in")
	g.want("108 0", `select concat_ws(' ', count(*), count(*) filter (where key = 'late')) from tidemark.outbox where key is distinct from 'early'`)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for value[int](g, `select count(*)::int from tidemark.outbox`) < 110 {
		if time.Now().After(deadline) {
			t.Fatal("what was committed late does not come")
		}
		g.run("event_outbox_in", 0)
	}
	g.want(110, `select count(distinct idempotency_key) from tidemark.outbox`)

	// A worker of the log takes over behind the last event of an old cursor, also where a pack has made it before.
	g.exec(`select tidemark.worker_set('iu_outbound_default', '{"domains": ["iu"]}')`)
	g.exec(`create table iu_route_worker_cursor (worker_name text primary key, last_created_at timestamptz, last_event_id uuid);
		insert into iu_route_worker_cursor select 'iu_outbound_default', created_at, id from event_outbox where event_subject_ref = 'u60';
		select tidemark.worker_set('iu_outbound_default', '{}', 'takes over', starts => (
			select (o.seq + 1)::text from tidemark.outbox o join iu_route_worker_cursor c
			on o.idempotency_key = 'event_outbox/public.event_outbox/' || c.last_event_id where c.worker_name = 'iu_outbound_default'))`)
	g.want("u60", `select o.key from tidemark.outbox o join tidemark.worker_cursor c on o.seq = c.watermark_id::bigint where c.worker = 'iu_outbound_default'`)

	// The old name shows the new log, old columns and all.
	g.want("iu unit_created lifecycle batch info unit u7 dieu44 {\"unit_id\": \"u7\"}", `select concat_ws(' ', event_domain, event_type, event_stream, delivery_lane, event_severity,
		event_subject_table, event_subject_ref, actor_ref, safe_payload) from source_names.event_outbox where event_subject_ref = 'u7'`)
}

// What cannot come in is told: a type that is not registered holds the worker, a row that breaks a rule is a dead letter, a
// role that may not emit emits nothing. A domain can be left out.
func TestWayInRefuses(t *testing.T) {
	t.Parallel()
	g := newWayIn(t)
	g.exec(`insert into event_outbox (event_domain, event_type, event_subject_ref, event_severity, created_at) values
			('system', 'alert', 'x', 'info', now() - interval '9 s'), ('iu', 'unit_created', 'good', 'info', now() - interval '8 s'),
			('iu', 'unit_created', 'bad', 'dreadful', now() - interval '7 s'), ('iu', 'unit_created', 'last', 'info', now() - interval '6 s');
		select tidemark.domain_set('iu'), governance.bring_in('event_outbox', domains => '{"system": null}'),
			tidemark.worker_set('event_outbox_in', '{"retry_policy": {"max_attempts": 1}}'),
			tidemark.gate_set('worker.event_outbox_in.enabled', true), tidemark.gate_set('routes.enabled', true)`)
	g.drain("event_outbox_in")
	g.want("source_misconfigured", `select f.kind from tidemark.finding f join tidemark.finding_detail d using (id) where f.closed_at is null and d.detail like '%iu/unit_created is not registered%'`)
	g.want(0, `select count(*) from tidemark.outbox`)
	g.exec(`select tidemark.type_set('iu', 'unit_created')`)
	g.drain("event_outbox_in")
	g.want("good last", `select string_agg(key, ' ' order by seq) from tidemark.outbox`)
	g.want("bad TM002", `select concat_ws(' ', event_snapshot ->> 'event_subject_ref', error_code) from tidemark.dead_letter where resolved_at is null`)
	g.want("1 2", `select concat_ws(' ', k ->> 'passed_over', k ->> 'emitted') from (select last_run_summary -> 'checkpoint' as k from tidemark.worker_cursor where source = 'event_outbox_in') c`)

	// The executor's right is to work, not to emit.
	g.exec(`insert into event_outbox (event_domain, event_type, event_subject_ref, created_at) values ('iu', 'unit_created', 'forged', now() - interval '5 s')`)
	conn := g.Connect(t)
	if _, err := conn.Exec(t.Context(), `set role tidemark_executor`); err != nil {
		t.Fatal(err)
	}
	_, _ = runOn(t.Context(), conn, "event_outbox_in", 0)
	g.want("good last", `select string_agg(key, ' ' order by seq) from tidemark.outbox`)

	for sql, want := range map[string]string{
		`select governance.bring_in('event_outbox', '{"colour": "id"}')`:                          `an event has no "colour"`,
		`select governance.bring_in('event_outbox', '{"type": "nothing"}')`:                       "has no column nothing",
		`select governance.bring_in('event_outbox', '{"type": null}')`:                            "has no column",
		`select governance.bring_in('event_outbox', '{"payload": "event_type"}')`:                 "must be json or jsonb",
		`select governance.bring_in('event_outbox', '{"written_at": "event_type"}')`:              "must be a timestamp",
		`select governance.bring_in('event_outbox', domains => '[]')`:                             "domains_is_an_object",
		`select governance.bring_in('tidemark.worker', '{"domain": "worker", "type": "worker"}')`: "table tidemark.worker has no column created_at",
	} {
		_, err := g.conn.Exec(t.Context(), sql)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", sql, err, want)
		}
	}
}

// Only names of columns come from governance.old_outbox, which an administrator may write: what else stands there is not run.
func TestWayInRunsNoSQLOfItsTable(t *testing.T) {
	t.Parallel()
	g := newWayIn(t)
	g.exec(`insert into event_outbox (event_domain, event_type, created_at) values ('iu', 'unit_created', now() - interval '9 s');
		create sequence touched;
		grant usage on sequence touched to public;
		select tidemark.domain_set('iu'), tidemark.type_set('iu', 'unit_created'), governance.bring_in('event_outbox'),
			tidemark.gate_set('worker.event_outbox_in.enabled', true), tidemark.gate_set('routes.enabled', true)`)
	for _, field := range []string{"id", "domain", "type", "payload", "occurred_at", "subject_ref", `x', nextval('public.touched'), 'y`} {
		g.exec(`begin; set local role tidemark_admin`)
		g.exec(`update governance.old_outbox set columns = columns || jsonb_build_object($1::text, $2::text)`, field, `nextval('public.touched')::text`)
		g.exec(`commit`)
		g.run("event_outbox_in", 0)
		g.want("source_misconfigured", `select f.kind from tidemark.finding f join tidemark.finding_detail d using (id) where f.closed_at is null and d.detail like '%does not exist%'`)
		g.exec(`select governance.bring_in('event_outbox')`)
	}
	g.want("f 0", `select concat_ws(' ', is_called, (select count(*) from tidemark.outbox)) from touched`)
	g.drain("event_outbox_in")
	g.want(1, `select count(*) from tidemark.outbox`)
}

// An installation that has expressions in governance.old_outbox gets the names of the columns.
func TestInstallNamesTheColumnsOfTheWayIn(t *testing.T) {
	t.Parallel()
	g := newWayIn(t)
	g.exec(`alter table event_outbox rename event_subject_ref to "Ref, r.of";
		alter table event_outbox alter occurred_at type timestamp;
		create schema "o'ld";
		grant usage on schema "o'ld" to public;
		alter table event_outbox set schema "o'ld"`)
	g.exec(`select tidemark.domain_set('iu'), tidemark.type_set('iu', 'unit_created')`)
	g.exec(`select governance.bring_in('"o''ld".event_outbox', '{"subject_ref": "Ref, r.of"}', reason => 'the way in')`)
	named := value[string](g, `select table_name || columns::text from governance.old_outbox`)
	g.exec(`update governance.old_outbox o set columns = (
			select jsonb_object_agg(case c.key when 'id' then 'idempotency_key' else c.key end, case c.key
				when 'id' then format('%L || %s', 'event_outbox/' || o.table_name || '/', governance.as_text(c.value))
				when 'payload' then format('coalesce(%s::jsonb, ''{}'')', governance.as_text(c.value))
				when 'occurred_at' then format('r.%I at time zone %L', c.value, 'UTC')
				else governance.as_text(c.value) end)
			|| jsonb_build_object('key', governance.as_text(o.columns ->> 'subject_ref'))
			from jsonb_each_text(o.columns) c);
		alter table governance.old_outbox drop table_name`)
	install(t, g.DB)
	if got := value[string](g, `select table_name || columns::text from governance.old_outbox`); got != named {
		t.Errorf("got %s, want %s", got, named)
	}
	g.exec(`insert into "o'ld".event_outbox (event_domain, event_type, "Ref, r.of", occurred_at, created_at)
			values ('iu', 'unit_created', 'u', '2026-05-01 10:00', now() - interval '9 s');
		select tidemark.gate_set('worker.event_outbox_in.enabled', true), tidemark.gate_set('routes.enabled', true)`)
	g.drain("event_outbox_in")
	g.want("u u 2026-05-01 10:00:00+00 t", `select concat_ws(' ', o.key, o.subject_ref, o.occurred_at, o.idempotency_key = 'event_outbox/"o''ld".event_outbox/' || e.id)
		from tidemark.outbox o, "o'ld".event_outbox e`)
}

// A role that may read the tables under a view of the old names may read the view, which has the columns of its document.
func TestSourceNames(t *testing.T) {
	t.Parallel()
	g := newGovern(t)
	g.birth(5)
	g.drainAll()
	for view, columns := range map[string]string{
		"gov_worker_cursor": `worker_name, source_name, event_domain, last_watermark_ts, last_watermark_id, last_run_at, last_run_summary, events_seen,
			attempts_written, dead_lettered, phase, metadata, created_at, updated_at`,
		"gov_worker_heartbeat":   `worker_name, executor_name, last_tick_at, lease_owner`,
		"queue_heartbeat":        `executor_name, executor_kind, last_tick_at, last_tick_status, ticks_total, current_job_id, lease_owner, metadata, created_at, updated_at, executor_id, domain_scope, last_beat_at, last_beat_payload, expected_cadence_seconds, stale_threshold_seconds, registered_at, registered_by`,
		"iu_route_worker_cursor": `worker_name, event_domain, last_run_at, last_run_summary, events_seen, attempts_written, dead_lettered, metadata, created_at, updated_at`,
		"event_outbox":           `id, event_domain, event_type, event_stream, delivery_lane, event_severity, event_subject_table, event_subject_ref, safe_payload, occurred_at, created_at`,
		"event_type_registry":    `event_domain, event_type, enabled`,
		"event_pending": `event_domain, event_type_hint, entity_table, entity_ref, canonical_address, actor_ref, capture_payload,
			processed_at, error_count, last_error`,
		"iu_sql_event_route":   `route_code, source_object_kind, sql_event, target_event_domain, target_event_type, enabled, dry_run, fail_closed, idempotency_policy, payload_contract`,
		"iu_outbound_route":    `route_code, event_domain, event_type, target_kind, target_ref, enabled, dry_run, fail_closed, retry_policy`,
		"iu_route_attempt":     `event_ref, route_kind, status, idempotency_key, attempt_no, error_code, error_detail`,
		"iu_route_dead_letter": `event_snapshot, idempotency_key, last_failed_at, resolved_at, resolution, event_domain`,
		"dot_config":           `key, value`,
		"v_queue_health":       `source, subject, domain, last_seen_at, age_seconds, events_seen, attempts_written, dead_lettered, status_hint`,
	} {
		for _, role := range []string{"tidemark_admin", "tidemark_reader"} {
			payloads := view == "event_outbox" || view == "event_pending" || view == "iu_route_dead_letter"
			err := pgx.BeginFunc(t.Context(), g.conn, func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), `set local role `+role); err != nil {
					return err
				}
				_, err := tx.Exec(t.Context(), `select `+columns+` from source_names.`+view)
				return err
			})
			if want := payloads && role == "tidemark_reader"; (err != nil) != want {
				t.Errorf("%s, %s: %v", view, role, err)
			}
		}
		g.want("v", `select relkind::text from pg_class where oid = $1::regclass and obj_description(oid, 'pg_class') is not null and pg_get_userbyid(relowner) = 'tidemark_owner'
			and 'security_invoker=true' = any (reloptions)`, "source_names."+view)
	}
	g.want(13, `select count(*) from pg_class where relnamespace = 'source_names'::regnamespace`)
	g.want("governance 5 incremental 1 5 1 {birth_registry}", `select concat_ws(' ', event_domain, events_seen, phase, last_run_summary ->> 'batch_count',
		last_run_summary ->> 'rows_seen', metadata ->> 'ruleset_version', translate(metadata ->> 'sources', '[]"', '{}')) from source_names.gov_worker_cursor where worker_name = 'gov_backfill_sweep'`)
	g.want(9, `select count(*) from source_names.gov_worker_heartbeat`)
	g.want("fresh", `select distinct status_hint from source_names.v_queue_health where source = 'heartbeat' and subject like 'gov_backfill%'`)
	g.want("governance", `select string_agg(distinct coalesce(domain, 'none'), ' ') from source_names.v_queue_health where subject like 'gov%'`)

	// A row that waits.
	g.exec(`alter table birth_registry alter entity_code drop not null;
		insert into birth_registry (collection_name, canonical_address) values ('c', 'gov:c/1')`)
	g.drain("gov_backfill_sweep")
	g.want("public.birth_registry 6 gov:c/1 c 1", `select concat_ws(' ', entity_table, entity_ref, canonical_address,
		capture_payload ->> 'collection_name', error_count) from source_names.event_pending`)

	// Of a route of all domains the event says which it is.
	g.exec(`select tidemark.type_set('iu', 'made'), tidemark.route_set('all', '{"domain": "*", "target_kind": "webhook", "target_ref": "https://example.com/", "options": {"unsigned": true}}')`)
	g.exec(`select tidemark.emit('iu', 'made')`)
	g.exec(`with e as (select o.seq, o.event_id from tidemark.outbox o where o.domain = 'iu'),
		r as (select r.id, w.id as worker_id from tidemark.outbound_route r join tidemark.worker w using (worker) where r.route_code = 'all'),
		p as (insert into tidemark.pending (worker_id, route_id, seq) select r.worker_id, r.id, e.seq from e, r)
		insert into tidemark.dead_letter (idempotency_key, worker_id, route_id, seq, event_id, event_snapshot, error_code)
		select 'k', r.worker_id, r.id, e.seq, e.event_id, '{"domain": "iu"}', 'x' from e, r`)
	g.want("iu made", `select concat_ws(' ', p.event_domain, p.event_type_hint) from source_names.event_pending p where p.entity_table = 'tidemark.outbox'`)
	g.want("iu", `select l.event_domain from source_names.iu_route_dead_letter l where l.route_code = 'all'`)
	g.exec(`update tidemark.dead_letter set event_snapshot = '{}' where idempotency_key = 'k'`)
	g.want("<nil>", `select l.event_domain from source_names.iu_route_dead_letter l where l.route_code = 'all'`)
	g.want("dead_letter_event none, pending none", `select string_agg(concat_ws(' ', q.source, coalesce(q.domain, 'none')), ', ' order by q.source) from source_names.v_queue_health q where q.subject = 'all'`)
}
