-- Inlined by its callers, so it has no search_path.
create or replace function tidemark.cursor_name(worker text, shard integer)
returns text
language sql immutable parallel safe
as $$
    select case when cursor_name.shard = 0 then cursor_name.worker
                else tidemark.executor_id(cursor_name.worker, 'outbox', cursor_name.shard) end
$$;
comment on function tidemark.cursor_name(text, integer) is
    'The subject of findings about a cursor of the log: the worker, for shards after the first worker/outbox/shard.';
grant execute on function tidemark.cursor_name(text, integer) to tidemark_reader, tidemark_executor;
