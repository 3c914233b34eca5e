-- Not a security definer: the target runs with the rights of the role that runs the worker, never with those of the
-- owner of the log; and with that role's own search_path, which ends with this function.
create or replace function tidemark.target_call(
    statement text,
    numbers bigint[],
    snapshot jsonb,
    path text,
    out code text,
    out message text)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    deferred constant text := tidemark.deferred_constraints();
begin
    perform set_config('search_path', path, true);
    execute statement using numbers, snapshot;
    -- At the commit it would fail with nobody to tell for which event.
    if deferred is not null then
        execute 'set constraints ' || deferred || ' immediate';
        execute 'set constraints ' || deferred || ' deferred';
    end if;
exception when others or assert_failure then
    get stacked diagnostics code = returned_sqlstate, message = message_text;
    if tidemark.is_transient(code) then
        raise;
    end if;
end
$$;
comment on function tidemark.target_call(text, bigint[], jsonb, text) is
'Runs a delivery statement ($1: numbers, $2: snapshot) with search_path path, and what it deferred to the commit. code is the SQLSTATE with which it failed, of which nothing remains then; null: it went well. An error that is not the event''s fault (tidemark.is_transient) is raised on.';
revoke all on function tidemark.target_call(text, bigint[], jsonb, text) from public;
grant execute on function tidemark.target_call(text, bigint[], jsonb, text) to tidemark_executor;
