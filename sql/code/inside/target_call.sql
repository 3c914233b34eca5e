-- Not a security definer: the target runs with the rights of the role that runs the worker, never with those of the
-- owner of the log; and with that role's own search_path, which ends with this function.
create or replace function tidemark.target_call(
    statement text,
    numbers bigint[],
    snapshot jsonb,
    route tidemark.outbound_route,
    path text,
    out code text,
    out message text,
    out late boolean,
    out dropped int8multirange)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
-- What is set below for the target ends with this function, since it is set here too.
set lock_timeout = 0
as $$
declare
    began constant timestamptz := clock_timestamp();
    timeout constant interval := route.timeout;
    deferred constant text := tidemark.deferred_constraints();
    in_transform boolean := false;
    events tidemark.outbox[];
    payloads jsonb[];
begin
    late := false;
    dropped := '{}';
    -- Unlike statement_timeout this one holds for the statement under way.
    perform set_config('lock_timeout', least(ceil(extract(epoch from timeout) * 1000), 2147483647)::text, true);
    if route.transform is not null or route.columns is not null then
        in_transform := true;
        events := case when snapshot is null then tidemark.wave(numbers)
                       else array[jsonb_populate_record(null::tidemark.outbox, snapshot)] end;
        payloads := tidemark.transformed(route.transform, route.columns,
                                         array(select (u.event).payload from (select unnest(events) as event) u), path);
        in_transform := false;
        select coalesce(range_agg(int8range((u.event).seq, (u.event).seq + 1)) filter (where u.payload is null), '{}'),
               array_agg(jsonb_populate_record(u.event, jsonb_build_object('payload', u.payload)))
                   filter (where u.payload is not null)
        into dropped, events
        from (select unnest(events) as event, unnest(payloads) as payload) u;
        if events is null then
            return;
        end if;
        snapshot := snapshot || jsonb_build_object('payload', payloads[1]);
    end if;
    perform set_config('search_path', path, true);
    execute statement using numbers, snapshot, events;
    -- At the commit it would fail, and would name no event.
    if deferred is not null then
        execute 'set constraints ' || deferred || ' immediate';
        execute 'set constraints ' || deferred || ' deferred';
    end if;
exception when others or assert_failure or query_canceled then
    get stacked diagnostics code = returned_sqlstate, message = message_text;
    dropped := '{}';
    -- Earlier than the timer, 57014 is that of a server behind a foreign table, or an operator's cancel. They look
    -- alike. Raised on, the former would repeat the pass, with all its routes, for ever.
    late := coalesce(code = '57014' and tidemark.time_left() <= interval '0', false)
        or code = '55P03' and clock_timestamp() - began >= timeout;
    -- Class 25 is what a transform gets that writes: the transaction is read-only for it alone.
    if in_transform and not late and (code like '25%' or not tidemark.is_transient(code)) then
        message := format('%s: %s (%s)', coalesce(route.transform, 'columns'), message, code);
        code := 'transform_failed';
    end if;
end
$$;
comment on function tidemark.target_call(text, bigint[], jsonb, tidemark.outbound_route, text) is
    'Runs a delivery statement of the route ($1: numbers, $2: snapshot; $3: the events of numbers, where the route has '
    'a transform or columns) with search_path path, and what it deferred to the commit; no lock is waited for longer '
    'than the route''s timeout. code is the SQLSTATE with which it failed, or transform_failed, of which nothing '
    'remains then; null: it went well, and dropped are the events that the transform dropped. late: it took too long, '
    'by statement_timeout (57014: the rest of the client''s statement has no timer) or by timeout (55P03). What an '
    'operator cancels while the target runs is the call alone.';
grant execute on function tidemark.target_call(text, bigint[], jsonb, tidemark.outbound_route, text)
    to tidemark_executor;
