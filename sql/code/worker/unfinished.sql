-- Inlined by its callers, so it has no search_path.
create or replace function tidemark.unfinished(worker_id integer)
returns table (unfinished boolean)
language sql stable
as $$
    select exists (select from tidemark.pending p where p.worker_id = unfinished.worker_id)
        or exists (select from tidemark.replay_job j
                   where j.worker_id = unfinished.worker_id and j.finished_at is null)
$$;
comment on function tidemark.unfinished(integer) is
    'True where the worker has more to do than to read the log: events are pending, or a replay is under way.';
grant execute on function tidemark.unfinished(integer) to tidemark_executor;
