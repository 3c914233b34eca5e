create or replace function tidemark.is_cursor(executor_id text)
returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select exists (select from tidemark.worker_cursor c
                   where c.worker || '/' || c.source || '/' || c.shard = executor_id)
$$;
comment on function tidemark.is_cursor(text) is
    'True where the executor is the worker/source/shard of a cursor, whose passes are its beats.';
