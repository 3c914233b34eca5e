create or replace view tidemark.source_cursor as
select c.worker, c.source, c.shard, w.handler, w.handler_ref, c.phase, c.watermark_ts, c.watermark_id,
       case when isfinite(o.oldest) then greatest(clock_timestamp() - o.oldest, interval '0') end as lag,
       c.verified_through, c.events_seen,
       (select count(*) from tidemark.pending_row p where p.worker_id = w.id and p.source = c.source and p.shard = c.shard) as pending,
       (select count(*) from tidemark.dead_letter l
        where l.worker_id = w.id and l.source = c.source and l.shard = c.shard and l.resolved_at is null) as open_dead_letters,
       c.dead_lettered, c.last_run_at, c.last_run_summary, c.paused_at
from tidemark.worker_cursor c
join tidemark.worker w on w.worker = c.worker
-- What was not read yet is younger than this: the horizon of a pass that left nothing, else the watermark.
cross join lateral (select case
    when c.last_run_summary ->> 'status' = 'ran' and c.last_run_summary ->> 'more' = 'false' then coalesce(c.horizon, c.last_run_at)
    else c.watermark_ts end) o (oldest)
where c.source <> 'outbox';
comment on view tidemark.source_cursor is 'How far each worker has come in each source. lag: age of the oldest row that may not have been read yet; null: nothing was read, or the source has no timestamp and rows are left.';
revoke all on tidemark.source_cursor from public;
grant select on tidemark.source_cursor to tidemark_reader, tidemark_executor;
