create or replace function tidemark.capture_make(route_code text)
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
as $$
declare
    route tidemark.inbound_route;
    relation regclass;
    name text;
    body text;
begin
    -- Two concurrent calls would fail with "tuple concurrently updated". This mode does not conflict with captures and
    -- readers. An advisory lock would not do: any login could hold it. The route is read after the lock is held, so
    -- that the second of two calls sees what the first one changed.
    begin
        lock table tidemark.inbound_route in share update exclusive mode;
    exception when lock_not_available then
        raise exception using errcode = 'lock_not_available',
            message = 'another session is making functions of captured tables',
            hint = 'Call it again. Who holds it: select * from tidemark.lock_blame(''tidemark.inbound_route'');';
    end;
    select r.* into route from tidemark.inbound_route r where r.route_code = capture_make.route_code;
    if route.source_object_kind <> 'table' then
        raise exception using errcode = 'TM005',
            message = format('inbound route %s is for a %s, not for a table', capture_make.route_code,
                             route.source_object_kind),
            hint = 'Tidemark makes no trigger for it: the application calls tidemark.inbound_emit.';
    end if;
    relation := tidemark.capture_table(route);
    if relation is null then
        raise exception using errcode = 'TM004',
            message = format('there is no inbound route "%s", or its table is missing', capture_make.route_code);
    end if;
    name := format('capture_%s', route.id);
    body := tidemark.capture_body(relation, route);
    if exists (select from pg_proc p where p.pronamespace = 'tidemark'::regnamespace and p.proname = name
                                       and p.prosrc = body) then
        return null;
    end if;
    -- Force a generic plan: a plan for the values of each statement would be no better, and would be made each time.
    execute format('create or replace function tidemark.%I() returns trigger language plpgsql volatile security '
                   'definer set search_path = pg_catalog, pg_temp %s set plan_cache_mode = force_generic_plan as %L',
                   name, tidemark.capture_settings(), body);
    execute format('revoke all on function tidemark.%I() from public', name);
    execute format('grant execute on function tidemark.%I() to tidemark_admin', name);
    execute format('comment on function tidemark.%I() is %L', name,
                   format('Captures for inbound route %s. Made by tidemark.capture_make.', route.route_code));
    return name;
end
$$;
comment on function tidemark.capture_make(text) is
    'Makes the trigger function tidemark.capture_<id> for an inbound route, for its table as it is now '
    '(tidemark.capture_table), and returns its name; null: the function is up to date. tidemark.capture_attach calls '
    'it, and capture_refresh calls it when the table or the route has changed. Raises TM004 where the route or its '
    'table does not exist.';
grant execute on function tidemark.capture_make(text) to tidemark_admin;
