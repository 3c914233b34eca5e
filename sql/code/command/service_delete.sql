-- public
create or replace function tidemark.service_delete(service text, reason text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    s tidemark.service;
    types constant text[] := array['result.' || service_delete.service, 'dead_letter.' || service_delete.service];
    problem text;
    advice text;
begin
    select v.* into s from tidemark.service v where v.service = service_delete.service for update;
    if not found then
        raise exception using errcode = 'TM004', message = format('there is no service "%s"', service_delete.service),
            hint = 'Services: select service from tidemark.service;';
    end if;
    select p.problem, p.advice into problem, advice from (
        select format('it has the command %s', c.name), 'Delete the command first: tidemark command delete ' || c.name
        from tidemark.command c where c.service = s.service
        union all
        select format('producer %s is on its allowlist', a.producer),
               format('Take the row back: select tidemark.command_disallow(%L, %L, %L, %L);', a.service, a.producer,
                      a.command, a.version)
        from tidemark.command_producer a where a.service = s.service
        union all
        select format('key %s is for it', k.kid), 'Delete the key first: tidemark command key delete ' || k.kid
        from tidemark.producer_key k where k.service = s.service
        union all
        select format('route %s is for its results or dead letters', r.route_code),
               'Delete the route first: tidemark route delete ' || r.route_code
        from tidemark.outbound_route r where r.domain = 'commands' and r.type = any (types)) p (problem, advice)
    limit 1;
    perform tidemark.deletion('service', s.service, service_delete.reason, problem, advice);
    delete from tidemark.event_type t where t.domain = 'commands' and t.type = any (types);
    delete from tidemark.setting v where v.key = format('commands.%s.enabled', s.service);
    delete from tidemark.service v where v.service = s.service;
    perform tidemark.finding_close('command_waiting', s.service);
    raise notice 'the role % stays', s.role
        using hint = format('In each database where it has rights: drop owned by %1$I; then: drop role %1$I;', s.role);
end
$$;
comment on function tidemark.service_delete(text, text) is
    'Deletes a service that has no commands, producers, keys and routes any more, with its gate and the types of its '
    'results and dead letters. Its role, its claims and its records stay: a service that is made again with the name '
    'goes on with them. Raises TM004, TM005 (no reason, or it is in use).';
grant execute on function tidemark.service_delete(text, text) to tidemark_admin;
