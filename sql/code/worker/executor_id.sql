-- Inlined by its callers, so it has no search_path.
create or replace function tidemark.executor_id(worker text, source text, shard integer)
returns text
language sql immutable parallel safe
as $$
    select executor_id.worker || '/' || executor_id.source || '/' || executor_id.shard::text
$$;
comment on function tidemark.executor_id(text, text, integer) is 'The name of a cursor in tidemark.heartbeat.';
grant execute on function tidemark.executor_id(text, text, integer) to tidemark_reader, tidemark_executor;
