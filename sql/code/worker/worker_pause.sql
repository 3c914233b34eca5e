-- public
create or replace function tidemark.worker_pause(worker text, pause boolean, reason text)
returns boolean
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    changed boolean;
begin
    if pause is null then
        raise exception using errcode = 'TM005', message = 'pause is null: true pauses the worker, false lets it go on';
    end if;
    -- In the order of tidemark.command_passes_end.
    perform from tidemark.worker_cursor c where c.worker = worker_pause.worker order by c.source, c.shard for update;
    update tidemark.worker_cursor c
    set paused_at = case when worker_pause.pause then clock_timestamp() end, updated_at = clock_timestamp()
    where c.worker = worker_pause.worker and (c.paused_at is null) = worker_pause.pause;
    changed := found;
    if not changed and not exists (select from tidemark.worker_cursor c where c.worker = worker_pause.worker) then
        raise exception using errcode = 'TM004', message = format('there is no worker "%s"', worker_pause.worker),
            hint = 'Workers: select worker from tidemark.worker;';
    end if;
    if changed then
        insert into tidemark.audit (action, object, reason, after)
        values (case when pause then 'pause' else 'resume' end, 'worker ' || worker_pause.worker, worker_pause.reason,
                jsonb_build_object('paused', pause));
    end if;
    return changed;
end
$$;
comment on function tidemark.worker_pause(text, boolean, text) is
    'Pauses a worker where it is (true), or resumes it (false). The worker obeys within a second; its gates stay as '
    'they are. Returns whether anything changed. Raises TM004, TM005.';
grant execute on function tidemark.worker_pause(text, boolean, text) to tidemark_admin;
