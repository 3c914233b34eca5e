create or replace view tidemark.worker_summary as
select l.worker, l.source, l.shard,
       case when l.gate is not null then 'closed' when l.last_run_at is null then 'never ran' when l.blocked_by is not null then 'blocked'
            when l.events > 0 then 'behind' else 'idle' end as status,
       l.gate, l.events, l.seconds, l.rate, l.holes, p.pending, p.oldest_pending_seconds, p.open_dead_letters, l.last_run_at
from tidemark.cursor_lag l
cross join lateral (
    select coalesce(sum(r.pending), 0)::bigint as pending, max(r.oldest_pending_seconds) as oldest_pending_seconds,
           coalesce(sum(r.open_dead_letters), 0)::bigint as open_dead_letters
    from tidemark.route_summary r where r.worker = l.worker) p;
comment on view tidemark.worker_summary is 'How each cursor is doing: status closed (gate says by what), never ran, blocked, behind or idle; how far behind in events (of the log only) and seconds, events a second, holes, and what its worker''s routes have pending and dead, as tidemark.route_summary counts it.';
revoke all on tidemark.worker_summary from public;
grant select on tidemark.worker_summary to tidemark_reader, tidemark_executor;
