create or replace function tidemark.unfinished(worker text)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
begin
    return exists (
        select from tidemark.worker w
        where w.worker = unfinished.worker
          and (exists (select from tidemark.pending p where p.worker_id = w.id)
               or exists (select from tidemark.replay_job j where j.worker_id = w.id and j.finished_at is null)));
end
$$;
comment on function tidemark.unfinished(text) is
    'True where the worker has more to do than to read the log: events are pending, or a replay is under way.';
grant execute on function tidemark.unfinished(text) to tidemark_executor;
