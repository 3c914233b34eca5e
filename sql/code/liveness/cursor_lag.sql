-- public
create or replace view tidemark.cursor_lag as
select c.worker, c.source, c.shard, g.gate,
       case when c.source = 'outbox' then greatest(s.last_seq - s.mark, 0)
            when c.source like 'kafka:%' then (c.last_run_summary ->> 'behind')::bigint end as events,
       case when not t.unread then 0
            when t.unread
                 then greatest(floor(extract(epoch from clock_timestamp() - t.since)), 0)::bigint end as seconds,
       (select coalesce(sum(upper(r) - lower(r)), 0)::bigint from unnest(c.holes + c.fenced) r) as holes,
       round((c.events_seen - p.older_seen) / nullif(extract(epoch from clock_timestamp() - p.older_at), 0), 1) as rate,
       c.events_seen, c.attempts_written, c.dead_lettered, c.last_run_at,
       c.last_run_summary ->> 'blocked_by' as blocked_by, t.unread,
       case when c.source like 'kafka:%' then exists (
           select from tidemark.heartbeat h
           where h.executor_id = tidemark.executor_id(c.worker, c.source, c.shard)
             and h.lease_until > clock_timestamp()) end as taken
from tidemark.worker_cursor c
left join tidemark.cursor_sample p on p.worker = c.worker and p.source = c.source and p.shard = c.shard
    and p.older_at > clock_timestamp() - interval '10 minutes' and p.older_seen <= c.events_seen
left join tidemark.source d on d.source = c.source
left join tidemark.source_unread n on n.worker = c.worker and n.source = c.source and n.shard = c.shard
    and not n.unread and n.noted_at <= clock_timestamp()
cross join lateral (select tidemark.closed_gate(c.worker) as gate) g
cross join lateral (
    -- Inserts of a captured table are in the log.
    select case when c.source = 'outbox' or d.safety = 'capture' then c.watermark_id::bigint end as mark,
           case when c.source = 'outbox' or d.safety = 'capture'
                then (select coalesce(max(o.seq), 0) from tidemark.outbox o) end as last_seq) s
cross join lateral (
    select u.unread, u.since from tidemark.cursor_unread(c) u where s.mark is null
    union all
    -- The oldest event that the cursor has not read: one lookup in the primary key.
    select s.last_seq > s.mark,
           -- An event cannot be read before its transaction ends. When it did is not on record, but until when the
           -- cursor had read all.
           case when s.last_seq > s.mark then greatest(n.noted_at, (
               select o.created_at from tidemark.outbox o where o.seq > s.mark order by o.seq limit 1)) end
    where s.mark is not null) t;
comment on view tidemark.cursor_lag is
    'How far each cursor is behind: events (of the log, and records of a partition of Kafka; null for tables), seconds '
    '(the age of the oldest committed event, row or record that the cursor has not read, and of the log at most the '
    'time since tidemark.watch or maintain last saw that it had read all; 0: it has read all; null: unknown; for '
    'tables as in tidemark.cursor_unread), unread (true: an event or row is unread), holes, rate (events a second over '
    'the last minutes; null: tidemark.maintain does not run), gate (the gate that is closed), taken (of a partition of '
    'Kafka: a daemon reads it now; null for others).';
grant select on tidemark.cursor_lag to tidemark_reader, tidemark_executor;
