-- public
-- Not a security definer, as dead_letter_replay: an SQL target runs with the rights of the caller.
create or replace function tidemark.route_test(
    route_code text,
    reason text default null,
    out event_id uuid,
    out event jsonb,
    out route jsonb,
    out outcome text,
    out error_code text,
    out detail text)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tested constant tidemark.outbound_route := (
        select r from tidemark.outbound_route r where r.route_code = route_test.route_code);
    closed text;
    made tidemark.outbox;
    failed record;
begin
    if tested is null then
        raise exception using errcode = 'TM004', message = format('there is no route "%s"', route_test.route_code),
            hint = 'Routes: select route_code from tidemark.outbound_route;';
    elsif tested.target_kind = 'go' then
        raise exception using errcode = 'TM005',
            message = format('route %s: its target is a function of a Go program', route_test.route_code),
            hint = 'Only that program can call it.';
    end if;
    -- A pause of the route does not refuse it: an operator tests the target before the route is resumed.
    closed := coalesce(tidemark.closed_delivery(tested.worker, tested.domain, null),
                       case when not tidemark.armed() then 'stage' end);
    if closed is not null then
        raise exception using errcode = 'TM009',
            message = format('route %s is not tested: closed by %s', route_test.route_code, closed),
            hint = 'A test leaves the database as a delivery does. Gates: select * from tidemark.setting '
                'where key like ''%enabled''; the stage: select * from tidemark.stage;';
    end if;

    event_id := gen_random_uuid();
    -- No type of the application's: a receiver that does not know the mark takes it for none of its events.
    made := row(0, event_id, clock_timestamp(), clock_timestamp(), 'immediate', 'info',
                case when tested.domain = '*' then 'tidemark' else tested.domain end, 'tidemark.test', null, null, null,
                null, null, null, tidemark.login(), jsonb_build_object('test', true, 'route', tested.route_code),
                null, null)::tidemark.outbox;
    event := tidemark.event_json(made) || '{"test": true}';
    route := to_jsonb(tested) || jsonb_build_object('timeout_seconds', extract(epoch from tested.timeout))
        || case when tested.target_kind = 'sql'
                then jsonb_build_object('target_takes', (tidemark.sql_target(tested.target_ref)).takes) else '{}' end;
    perform tidemark.route_test_note(tested.route_code, event_id, 'begun', null, null, null, route_test.reason);
    -- The test event is sent as it is: what a transform makes of it says nothing of the application's events.
    detail := (tidemark.transform_problem(tested)).problem;
    if detail is not null then
        outcome := 'failed';
        error_code := 'transform_failed';
        perform tidemark.route_test_note(tested.route_code, event_id, outcome, error_code, detail, null,
                                         route_test.reason);
        return;
    elsif not tidemark.target_is_inside(tested.target_kind) then
        return;
    end if;

    begin
        select c.code, c.message into failed from tidemark.target_call(
            tidemark.delivery_statement(tested, true), null, event,
            jsonb_populate_record(tested, '{"transform": null, "columns": null}'), tidemark.default_search_path()) c;
        if failed.code is null then
            raise exception using errcode = 'UNDO0';
        end if;
        error_code := failed.code;
        detail := failed.message;
    exception
        -- It went well, and nothing of it stays.
        when sqlstate 'UNDO0' then null;
        when undefined_function or undefined_table or invalid_parameter_value or feature_not_supported then
            get stacked diagnostics error_code = returned_sqlstate, detail = message_text;
    end;
    outcome := case when error_code is null then 'accepted' else 'failed' end;
    perform tidemark.route_test_note(tested.route_code, event_id, outcome, error_code, null, null, route_test.reason);
end
$$;
comment on function tidemark.route_test(text, text) is
    'Begins a test of a route''s target. The event is marked as a test (type tidemark.test, payload {"test": true}) '
    'and is not in the log; the route may be off, in dry run or paused, and its transform and columns are only looked '
    'for. A target inside the database is called at once, with the caller''s rights, and all its effects are undone: '
    'outcome accepted or failed. For a target outside the outcome is null: the caller sends the event after the '
    'commit (tidemark route test) and calls tidemark.route_test_note. tidemark.audit records the test. Raises TM004, '
    'TM005 (a target of a Go program), TM009 (a gate is closed, the worker is paused, or the installation is not '
    'live).';
grant execute on function tidemark.route_test(text, text) to tidemark_admin;
