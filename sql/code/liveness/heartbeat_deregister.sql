-- public
create or replace function tidemark.heartbeat_deregister(executor_id text, reason text default null)
returns setof tidemark.heartbeat
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    gone tidemark.heartbeat;
begin
    if tidemark.is_cursor(executor_id) then
        raise exception using errcode = 'TM005',
            message = format('executor %s is the cursor of a worker, and keeps its heartbeat', executor_id),
            hint = 'To stop alerts about its silence, pause it (tidemark worker pause NAME) or close its gate.';
    end if;
    delete from tidemark.heartbeat h where h.executor_id = heartbeat_deregister.executor_id returning h.* into gone;
    if not found then
        raise exception using errcode = 'TM004', message = format('there is no executor "%s"', executor_id),
            hint = 'Executors: select executor_id from tidemark.heartbeat;';
    end if;
    delete from tidemark.silence s where s.executor_id = heartbeat_deregister.executor_id;
    perform tidemark.configuration_disown('heartbeat', heartbeat_deregister.executor_id);
    perform tidemark.finding_close('heartbeat_silent', heartbeat_deregister.executor_id);
    insert into tidemark.audit (action, object, reason, before)
    values ('heartbeat_deregister', 'heartbeat ' || gone.executor_id, heartbeat_deregister.reason, to_jsonb(gone));
    return next gone;
end
$$;
comment on function tidemark.heartbeat_deregister(text, text) is
    'Deletes an executor that will not come back, and closes the findings about its silence. Returns the deleted row; '
    'tidemark.audit records it. Raises TM004 (no such executor), TM005 (it is a worker''s cursor).';
grant execute on function tidemark.heartbeat_deregister(text, text) to tidemark_admin;
