-- public
create or replace view tidemark.worker_health as
select c.worker, c.source, c.shard,
       case
           when l.gate is not null then 'closed'
           when c.last_run_at is null then 'never ran'
           when c.last_run_summary ->> 'status' = 'held' then 'held'
           when c.last_run_summary ? 'blocked_by' then 'blocked'
           when not l.taken then 'not read'
           when l.unread then 'behind'
           when l.unread is null then 'unknown'
           else 'idle'
       end as status,
       l.gate,
       m.number as watermark,
       case when m.number is not null then s.last_seq end as last_seq,
       case when m.number is not null then greatest(s.last_seq - m.number, 0) end as behind,
       (select coalesce(sum(upper(r) - lower(r)), 0)::bigint from unnest(c.holes + c.fenced) r) as holes,
       c.last_run_at, c.last_run_summary, c.events_seen, c.attempts_written, c.dead_lettered,
       (select count(*) from (
            select from tidemark.dead_letter l
            where l.worker_id = w.id and l.source = c.source and l.shard = c.shard and l.resolved_at is null
            order by l.error_code limit 10000) l) as open_dead_letters,
       case when m.number is not null then
                (select count(*) from (
                    select from tidemark.pending p where p.worker_id = w.id and p.shard = c.shard
                    order by p.route_id, p.seq limit 10000) p)
            else (select count(*) from (
                select from tidemark.pending_row p
                where p.worker_id = w.id and p.source = c.source and p.shard = c.shard limit 10000) p) end as pending,
       l.seconds as behind_seconds
from tidemark.worker_cursor c
join tidemark.worker w on w.worker = c.worker
join tidemark.cursor_lag l on l.worker = c.worker and l.source = c.source and l.shard = c.shard
cross join lateral (select case when c.source = 'outbox' then c.watermark_id::bigint end) as m (number)
-- Use the highest visible number, not the last one taken: numbers at the end of the log that were rolled back would
-- keep a worker behind forever.
cross join (select coalesce(max(o.seq), 0) from tidemark.outbox o) as s (last_seq);
comment on view tidemark.worker_health is
    'The state of each worker. status: closed (gate names the gate), never ran, held or blocked (last_run_summary has '
    'the reason), not read, behind, idle or unknown (as in tidemark.worker_summary). Also how far it is behind in '
    'numbers (of the log; null for tables) and seconds (tidemark.cursor_lag), and the open deliveries and dead letters '
    'of the cursor, counted up to 10000. Source: S0 fn_iu_route_worker_health.';
grant select on tidemark.worker_health to tidemark_reader, tidemark_executor;
