-- Findings of workers of tables, and those of before messages were kept apart, told the message of an error to readers. It may
-- quote a row: it goes where roles that may read payloads find it (tidemark.finding_detail).

set local role tidemark_owner;

-- They have a new parameter.
drop function if exists tidemark.source_hold;
drop function if exists tidemark.source_misread;

with told as (
    insert into tidemark.finding_message (finding, message)
    select f.id, f.detail from tidemark.finding f
    where (f.kind = 'source_misconfigured'
           or f.kind in ('worker_failing', 'target_down', 'route_misconfigured')
              and f.last_seen_at < (select m.applied_at from tidemark.migration m where m.version = 35))
      and not exists (select from tidemark.finding_message m where m.finding = f.id)
    returning finding)
update tidemark.finding f set detail = 'the message is for operators' from told t where t.finding = f.id;
update tidemark.audit a
set before = a.before - 'detail', after = a.after - 'detail'
where a.action = 'finding_ack' and a.before ->> 'kind' in ('source_misconfigured', 'worker_failing', 'target_down', 'route_misconfigured');
update tidemark.worker_cursor c set last_run_summary = c.last_run_summary - 'detail'
where c.last_run_summary ->> 'status' = 'held' and c.source <> 'outbox';
