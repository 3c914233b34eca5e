-- public
create or replace view tidemark.route_attempt as
select w.worker, r.route_code, o.event_id, s.seq, 1 as attempt_no, d.outcome, d.reason, null::text as detail,
       d.decided_at, tidemark.attempt_key(w.worker, r.route_code, o.event_id) as idempotency_key
from tidemark.decision d
-- Two functions that return sets would be estimated at 100,000 rows a decision, and every query be compiled (JIT).
cross join lateral unnest(tidemark.multirange_numbers(d.seqs)) as s (seq)
join tidemark.worker_name w on w.id = d.worker_id
left join tidemark.route_name r on r.id = d.route_id
left join tidemark.outbox o on o.seq = s.seq
union all
select w.worker, r.route_code, coalesce(o.event_id, l.event_id), a.seq, a.attempt_no, a.outcome, a.reason,
       tidemark.error_shown(a.reason, a.detail, current_user) collate "default", a.decided_at,
       coalesce(tidemark.attempt_key(w.worker, r.route_code, coalesce(o.event_id, l.event_id)), l.idempotency_key)
from tidemark.attempt a
join tidemark.worker_name w on w.id = a.worker_id
join tidemark.route_name r on r.id = a.route_id
left join tidemark.outbox o on o.seq = a.seq
-- A replay may outlive the event's partition; its dead letter keeps the id.
left join tidemark.dead_letter l
    on o.seq is null and l.seq = a.seq and l.worker_id = a.worker_id and l.route_id = a.route_id;
comment on view tidemark.route_attempt is
    'The evidence, one row per event, route and attempt: what was decided, and what came of it. route_code null: no '
    'route claimed the event. Unique by (idempotency_key, attempt_no). detail is shown to roles that may read '
    'payloads (tidemark.error_shown). For one event tidemark.event_evidence is quicker. Source: S0 iu_route_attempt.';
grant select on tidemark.route_attempt to tidemark_reader, tidemark_executor;
