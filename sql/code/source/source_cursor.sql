-- public
create or replace view tidemark.source_cursor as
select c.worker, c.source, c.shard, w.handler, w.handler_ref, c.phase, c.watermark_ts, c.watermark_id,
       make_interval(secs => l.seconds) as lag,
       c.verified_through, c.events_seen,
       (select count(*) from (
            select from tidemark.pending_row p
            where p.worker_id = w.id and p.source = c.source and p.shard = c.shard limit 10000) p) as pending,
       (select count(*) from (
            select from tidemark.dead_letter l
            where l.worker_id = w.id and l.source = c.source and l.shard = c.shard and l.resolved_at is null
            limit 10000) l) as open_dead_letters,
       c.dead_lettered, c.last_run_at, c.last_run_summary, c.paused_at
from tidemark.worker_cursor c
join tidemark.worker w on w.worker = c.worker
join tidemark.cursor_lag l on l.worker = c.worker and l.source = c.source and l.shard = c.shard
where c.source <> 'outbox' and c.source not like 'kafka:%';
comment on view tidemark.source_cursor is
    'How far each worker has come in each source. lag: age of the oldest committed row that the worker has not read, '
    'as tidemark.cursor_lag reports it; 0: the worker has read all rows; null: unknown. pending and '
    'open_dead_letters are counted up to 10000.';
grant select on tidemark.source_cursor to tidemark_reader, tidemark_executor;
