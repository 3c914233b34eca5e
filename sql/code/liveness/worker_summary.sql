-- public
create or replace view tidemark.worker_summary as
select l.worker, l.source, l.shard,
       case when l.gate is not null then 'closed' when l.last_run_at is null then 'never ran'
            when l.blocked_by is not null then 'blocked' when not l.taken then 'not read'
            when l.unread then 'behind' when l.unread is null then 'unknown' else 'idle' end as status,
       l.gate, l.events, l.seconds, l.rate, l.holes, p.pending, p.oldest_pending_seconds, p.open_dead_letters,
       l.last_run_at
from tidemark.cursor_lag l
cross join lateral (
    select coalesce(sum(r.pending), 0)::bigint as pending, max(r.oldest_pending_seconds) as oldest_pending_seconds,
           coalesce(sum(r.open_dead_letters), 0)::bigint as open_dead_letters
    -- Routes are of all shards: they count once.
    from tidemark.route_summary r where r.worker = l.worker and l.shard = 0
    having l.source = 'outbox'
    union all
    -- Rows of a table that failed.
    select r.waiting, extract(epoch from clock_timestamp() - r.since)::bigint,
           (select count(*) from (
                select from tidemark.dead_letter d
                where d.worker_id = w.id and d.source = l.source and d.shard = l.shard and d.route_id is null
                  and d.resolved_at is null limit 10000) d)
    from tidemark.worker w
    cross join lateral (
        select count(*) as waiting, min(r.created_at) as since
        from (select r.created_at from tidemark.pending_row r
              where r.worker_id = w.id and r.source = l.source and r.shard = l.shard
              order by r.next_attempt_at limit 10000) r) r
    where l.source <> 'outbox' and w.worker = l.worker) p;
comment on view tidemark.worker_summary is
    'The state of each cursor: status closed (gate names the gate), never ran, blocked, not read (a partition of Kafka '
    'that no daemon reads: none runs, or commands.topics leaves its topic out), behind, idle or unknown (this role may '
    'not read the table, and tidemark.maintain has not looked lately); how far it is behind in events (not of tables) '
    'and seconds, events a second, holes, and pending and dead items: for the log by the worker''s routes, with its '
    'first shard, as in tidemark.route_summary, for a table the rows that failed, counted up to 10000.';
grant select on tidemark.worker_summary to tidemark_reader, tidemark_executor;
