create or replace function tidemark.route_test_note(
    route_code text,
    event_id uuid,
    outcome text,
    error_code text,
    detail text,
    seconds double precision,
    reason text default null)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if outcome not in ('begun', 'delivered', 'accepted', 'failed', 'unknown') or outcome is null then
        raise exception using errcode = 'TM005', message = format('a test has no outcome "%s"', outcome),
            hint = 'Outcomes: begun, delivered, accepted, failed or unknown.';
    elsif not exists (select from tidemark.outbound_route r where r.route_code = route_test_note.route_code) then
        raise exception using errcode = 'TM004', message = format('there is no route "%s"', route_test_note.route_code),
            hint = 'Routes: select route_code from tidemark.outbound_route;';
    end if;
    insert into tidemark.audit (action, object, reason, after)
    values ('route_test', 'outbound_route ' || route_code, nullif(route_test_note.reason, ''),
        jsonb_strip_nulls(jsonb_build_object('event_id', route_test_note.event_id, 'outcome', route_test_note.outcome,
        'error_code', left(route_test_note.error_code, 100),
        'detail', left(route_test_note.detail, 1000), 'seconds', route_test_note.seconds)));
end
$$;
comment on function tidemark.route_test_note(text, uuid, text, text, text, double precision, text) is
    'Records in tidemark.audit (action route_test) that a test of a route began, or how it ended: begun, delivered, '
    'accepted (a target inside the database took the event, and the effects were undone), failed or unknown. Raises '
    'TM004, TM005.';
grant execute on function tidemark.route_test_note(text, uuid, text, text, text, double precision, text)
    to tidemark_admin;
