-- The tables of the source documents by their old names, as views with the old columns. They are read-only, and run
-- with the rights of the role that asks.

comment on schema source_names is
    'Views with the names and columns that the source documents S0, S1, S2 and S4 use. Read only. Pack governance.';
grant usage on schema source_names to tidemark_admin, tidemark_executor, tidemark_reader;

create or replace view source_names.gov_worker_cursor with (security_invoker = true) as
select p.worker as worker_name, p.source as source_name, 'governance'::text as event_domain,
       p.watermark_ts as last_watermark_ts, p.watermark_id as last_watermark_id, c.last_run_at,
       jsonb_strip_nulls(jsonb_build_object(
           'batch_count', p.batch_count, 'rows_seen', p.rows_seen, 'dirty_marked', p.dirty_marked, 'dlq', p.dlq,
           'snapshot_ref', p.snapshot_ref, 'ruleset_version', p.ruleset_version,
           'started_at', p.started_at, 'ended_at', p.ended_at)) as last_run_summary,
       c.events_seen, c.attempts_written, c.dead_lettered, p.phase,
       jsonb_strip_nulls(jsonb_build_object(
           'ruleset_version', r.ruleset_version, 'source_snapshot_ref', s.snapshot_ref, 'batch_size', w.page_size,
           'coalesce_window', w.coalesce_window, 'sources', (
               select jsonb_agg(distinct o.source) from tidemark.worker_cursor o
               where o.worker = p.worker))) as metadata,
       c.created_at, c.updated_at, p.shard
from governance.progress p
join tidemark.worker_cursor c on c.worker = p.worker and c.source = p.source and c.shard = p.shard
join tidemark.worker w on w.worker = p.worker
left join governance.summary s on s.is_current
left join governance.ruleset r on r.is_current;
comment on view source_names.gov_worker_cursor is 'S2 39.4: tidemark.worker_cursor of the five workers.';

create or replace view source_names.queue_heartbeat with (security_invoker = true) as
select h.executor_id, h.executor_id as executor_name, h.kind as executor_kind, h.domain_scope,
       h.last_beat_at, h.last_beat_at as last_tick_at, h.last_status as last_tick_status, h.ticks_total,
       h.current_job_id, h.lease_owner, h.payload as last_beat_payload, h.payload as metadata,
       h.expected_cadence_seconds, h.stale_threshold_seconds, h.registered_at, h.registered_by,
       h.registered_at as created_at, greatest(h.last_beat_at, h.registered_at) as updated_at
from tidemark.heartbeat h;
comment on view source_names.queue_heartbeat is 'S2 39.2 and S4 3.1: tidemark.heartbeat.';

create or replace view source_names.gov_worker_heartbeat with (security_invoker = true) as
select split_part(q.executor_id, '/', 1) as worker_name, q.*
from source_names.queue_heartbeat q
where split_part(q.executor_id, '/', 1) = any (governance.worker_names());
comment on view source_names.gov_worker_heartbeat is
    'S2 39.0: tidemark.heartbeat of the five workers, one row per cursor.';

create or replace view source_names.iu_route_worker_cursor with (security_invoker = true) as
select c.worker as worker_name, array_to_string(w.domains, ',') as event_domain, c.watermark_id::bigint as last_seq,
       c.last_run_at, c.last_run_summary, c.events_seen, c.attempts_written, c.dead_lettered, c.metadata,
       c.created_at, c.updated_at
from tidemark.worker_cursor c join tidemark.worker w on w.worker = c.worker
where c.source = 'outbox';
comment on view source_names.iu_route_worker_cursor is
    'S0: tidemark.worker_cursor of the log. Its mark is a number, last_seq. A mark of (last_created_at, last_event_id) '
    'would lose an event that is committed late.';

create or replace view source_names.event_outbox with (security_invoker = true) as
select o.event_id as id, o.domain as event_domain, o.type as event_type, o.stream as event_stream,
       o.lane::text as delivery_lane, o.severity::text as event_severity, o.subject_table as event_subject_table,
       o.subject_ref as event_subject_ref, o.actor as actor_ref, o.payload as safe_payload, o.idempotency_key,
       o.occurred_at, o.created_at, o.seq
from tidemark.outbox o;
comment on view source_names.event_outbox is 'S0, S1: tidemark.outbox. Call tidemark.emit instead of an insert.';

create or replace view source_names.event_type_registry with (security_invoker = true) as
select t.domain as event_domain, t.type as event_type, t.version, t.description, t.schema as payload_schema, t.enabled
from tidemark.event_type t;
comment on view source_names.event_type_registry is 'S1: tidemark.event_type.';

create or replace view source_names.event_pending with (security_invoker = true) as
select null::text as event_domain, null::text as event_type_hint,
       format('%I.%I', s.schema_name, s.table_name) as entity_table,
       p.item_id as entity_ref, p.snapshot as capture_payload, null::timestamptz as processed_at, p.error_count,
       p.last_error, p.snapshot ->> g.address_column as canonical_address, null::text as actor_ref
from tidemark.pending_row p join tidemark.source s on s.source = p.source
left join governance.watched g on g.source = p.source
union all
-- A route of all domains says nothing of the event.
select coalesce(o.domain, nullif(r.domain, '*')), coalesce(o.type, nullif(r.type, '*')), 'tidemark.outbox',
       p.seq::text, null, null, p.error_count, p.last_error, null, null
from tidemark.pending p join tidemark.outbound_route r on r.id = p.route_id
left join tidemark.outbox o on o.seq = p.seq;
comment on view source_names.event_pending is
    'S2 39.2: tidemark.pending_row (rows of tables) and tidemark.pending (deliveries). Processed items are gone; the '
    'author of a change is unknown.';

create or replace view source_names.iu_sql_event_route with (security_invoker = true) as
select r.route_code, r.source_object_kind, r.source_schema, r.source_table, r.sql_event,
       r.domain as target_event_domain, r.type as target_event_type, r.stream as target_event_stream, r.enabled,
       r.dry_run, r.fail_closed, r.idempotency_policy, r.payload_columns as payload_contract
from tidemark.inbound_route r;
comment on view source_names.iu_sql_event_route is 'S1: tidemark.inbound_route.';

create or replace view source_names.iu_outbound_route with (security_invoker = true) as
select r.route_code, r.domain as event_domain, r.type as event_type, r.stream as event_stream, r.target_kind,
       r.target_ref, r.enabled, r.dry_run, r.fail_closed, r.retry_policy
from tidemark.outbound_route r;
comment on view source_names.iu_outbound_route is 'S1: tidemark.outbound_route.';

create or replace view source_names.iu_route_attempt with (security_invoker = true) as
select a.idempotency_key, a.attempt_no, a.event_id as event_ref, a.route_code, 'outbound'::text as route_kind,
       a.worker as worker_name, a.outcome::text as status, a.reason as error_code, a.detail as error_detail,
       a.decided_at as created_at
from tidemark.route_attempt a;
comment on view source_names.iu_route_attempt is 'S0, S1: tidemark.route_attempt.';

create or replace view source_names.iu_route_dead_letter with (security_invoker = true) as
select l.id, w.worker as worker_name, r.route_code,
       -- A route of all domains says nothing of the event.
       coalesce(l.event_snapshot ->> 'domain', nullif(r.domain, '*')) as event_domain,
       l.event_id as event_ref, l.event_snapshot, l.error_code, l.error_detail, l.attempts, l.first_failed_at,
       l.last_failed_at, l.idempotency_key, l.resolved_at, l.resolution
from tidemark.dead_letter l join tidemark.worker w on w.id = l.worker_id
left join tidemark.outbound_route r on r.id = l.route_id;
comment on view source_names.iu_route_dead_letter is 'S0: tidemark.dead_letter.';

create or replace view source_names.dot_config with (security_invoker = true) as
select s.key, s.value, s.description from tidemark.setting s;
comment on view source_names.dot_config is 'S0, S1, S4: tidemark.setting, where gates are too.';

create or replace view source_names.v_queue_health with (security_invoker = true) as
select case q.kind when 'job_backlog' then 'backlog_job_queue' else q.kind end as source, q.name as subject,
       coalesce(q.domain, case when split_part(q.name, '/', 1) = any (governance.worker_names())
                                    then 'governance' end) as domain, q.last_seen_at,
       q.age_seconds,
       (coalesce(q.numbers -> 'events_seen', q.numbers -> 'waiting'))::bigint as events_seen,
       (q.numbers -> 'attempts_written')::bigint as attempts_written,
       (q.numbers -> 'dead_lettered')::bigint as dead_lettered, q.status_hint
from tidemark.queue_health q;
comment on view source_names.v_queue_health is 'S4 3.3: tidemark.queue_health, which has more kinds of rows than S4.';

grant select on all tables in schema source_names to tidemark_admin, tidemark_executor, tidemark_reader;
