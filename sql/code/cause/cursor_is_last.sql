create or replace function tidemark.cursor_is_last(cursor tidemark.worker_cursor)
returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select cursor.source <> 'outbox' or not exists (
        select from tidemark.worker_cursor o
        where o.worker = cursor.worker and o.source = 'outbox' and o.shard <> cursor.shard
          and (o.watermark_id::bigint, o.shard) < (cursor.watermark_id::bigint, cursor.shard))
$$;
comment on function tidemark.cursor_is_last(tidemark.worker_cursor) is
    'False for a shard of a worker of the log where another shard is farther behind: each reads the whole log, so that '
    'unread events would count several times.';
grant execute on function tidemark.cursor_is_last(tidemark.worker_cursor) to tidemark_reader, tidemark_executor;
