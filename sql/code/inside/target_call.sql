-- Not a security definer: the target runs with the rights of the role that runs the worker, never with those of the
-- owner of the log; and with that role's own search_path, which ends with this function.
create or replace function tidemark.target_call(
    statement text,
    numbers bigint[],
    snapshot jsonb,
    path text,
    timeout interval,
    out code text,
    out message text,
    out late boolean)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
-- What is set below for the target ends with this function, since it is set here too.
set lock_timeout = 0
as $$
declare
    began constant timestamptz := clock_timestamp();
    deferred constant text := tidemark.deferred_constraints();
begin
    late := false;
    -- Unlike statement_timeout this one holds for the statement under way.
    perform set_config('lock_timeout', least(ceil(extract(epoch from timeout) * 1000), 2147483647)::text, true);
    perform set_config('search_path', path, true);
    execute statement using numbers, snapshot;
    -- At the commit it would fail, and would name no event.
    if deferred is not null then
        execute 'set constraints ' || deferred || ' immediate';
        execute 'set constraints ' || deferred || ' deferred';
    end if;
exception when others or assert_failure or query_canceled then
    get stacked diagnostics code = returned_sqlstate, message = message_text;
    -- An operator's cancel has the same code as the timer, and comes earlier.
    late := coalesce(code = '57014' and tidemark.time_left() <= interval '0', false)
        or code = '55P03' and clock_timestamp() - began >= timeout;
    if not late and tidemark.is_transient(code) then
        raise;
    end if;
end
$$;
comment on function tidemark.target_call(text, bigint[], jsonb, text, interval) is
    'Runs a delivery statement ($1: numbers, $2: snapshot) with search_path path, and what it deferred to the commit; '
    'no lock is waited for longer than timeout. code is the SQLSTATE with which it failed, of which nothing remains '
    'then; null: it went well. late: it took too long, by statement_timeout (57014: the rest of the client''s '
    'statement has no timer) or by timeout (55P03). Another error that is not the event''s fault '
    '(tidemark.is_transient) is raised on.';
grant execute on function tidemark.target_call(text, bigint[], jsonb, text, interval) to tidemark_executor;
