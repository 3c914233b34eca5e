-- public
create or replace function tidemark.route_switches(route_code text, reason text default 'go live')
returns table (switch text, is_open boolean, state text, sql text, cli text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    route tidemark.outbound_route;
    code constant text := tidemark.shell_word(route_switches.route_code);
    why constant text := route_switches.reason;
    given constant text := ' --reason ' || tidemark.shell_word(why);
    gate text;
begin
    select * into route from tidemark.outbound_route r where r.route_code = route_switches.route_code;
    if route.id is null then
        raise exception using errcode = 'TM004', message = format('there is no route "%s"', route_switches.route_code),
            hint = coalesce((
                select format('It is a worker of tables, which has no route: tidemark activate %1$s checks it and '
                              'opens its gate, worker.%1$s.enabled.', w.worker)
                from tidemark.worker w where w.worker = route_switches.route_code and w.source = 'table'),
                'Routes: select route_code from tidemark.outbound_route;');
    end if;
    return query
    select 'stage', tidemark.armed(),
           case when tidemark.armed() then 'live' when s.stage = 'live' then 'live elsewhere: this is a copy'
                else s.stage end, o.sql, o.cli
    from tidemark.stage s, tidemark.gate_opening('stage', route.worker, why) o;

    foreach gate in array array['routes.enabled', 'worker.' || route.worker || '.enabled'] loop
        return query
        select 'gate ' || gate, g.is_open, case when g.is_open then 'open' else 'closed' end, o.sql, o.cli
        from tidemark.gate_opening(gate, route.worker, why) o,
             (select exists (select from tidemark.setting s where s.key = gate and s.value = 'true')) g (is_open);
    end loop;
    return query
    select 'gate domain.' || route.domain || '.enabled', false, 'closed', o.sql, o.cli
    from tidemark.gate_opening('domain.' || route.domain || '.enabled', route.worker, why) o
    where route.domain = any (tidemark.closed_domains());
    return query
    select 'worker ' || route.worker, false, 'paused', o.sql, o.cli
    from tidemark.gate_opening('paused', route.worker, why) o
    where exists (select from tidemark.worker_cursor c where c.worker = route.worker and c.paused_at is not null);

    return query
    select 'route', route.enabled, case when route.enabled then 'on' else 'off' end,
           format('select tidemark.route_set(%L, ''{"enabled": true}'', %L);', route.route_code, why),
           'tidemark route enable ' || code || given
    union all
    select 'dry run', not route.dry_run, case when route.dry_run then 'on' else 'off' end,
           format('select tidemark.route_set(%L, ''{"dry_run": false}'', %L);', route.route_code, why),
           'tidemark route set ' || code || ' --dry-run=false' || given
    union all
    select 'pause', false, 'paused', o.sql, o.cli
    from tidemark.gate_opening('route ' || route.route_code, route.worker, why) o
    where route.paused_at is not null;
end
$$;
comment on function tidemark.route_switches(text, text) is
    'All that must be open before the route delivers, in the order in which it is opened: the stage, the master gate, '
    'the worker''s gate, the route itself, and its dry run; the gate of its domain, and a pause of its worker or of '
    'itself, where they hold it back (a route of all domains delivers the others). is_open: it does not. sql and cli '
    'open it. Raises TM004.';
grant execute on function tidemark.route_switches(text, text) to tidemark_reader, tidemark_executor;
