create or replace function tidemark.closed_switch(worker text, live_routes integer[], closed text[])
returns text
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    return coalesce(
        tidemark.closed_gate(closed_switch.worker),
        (select 'route ' || r.route_code from tidemark.outbound_route r
         where r.id = any (live_routes) and not tidemark.route_delivers(r)
         order by r.id limit 1),
        (select 'domain.' || d || '.enabled' from unnest(tidemark.closed_domains()) d where d <> all (closed) limit 1));
end
$$;
comment on function tidemark.closed_switch(text, integer[], text[]) is
    'What has closed since the pass began and keeps the worker from delivering on these routes: a gate '
    '(tidemark.closed_gate), a route that is off, in dry run or paused, or the gate of a domain that is not in closed; '
    'events of the domains in closed are not delivered anyway. Null: nothing has.';
grant execute on function tidemark.closed_switch(text, integer[], text[]) to tidemark_executor;
