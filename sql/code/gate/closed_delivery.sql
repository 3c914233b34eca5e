create or replace function tidemark.closed_delivery(worker text, domain text, route_id integer)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return coalesce(
        tidemark.closed_gate(closed_delivery.worker),
        case when closed_delivery.domain = any (tidemark.closed_domains())
                  then 'domain.' || closed_delivery.domain || '.enabled' end,
        (select 'route ' || r.route_code from tidemark.outbound_route r
         where r.id = closed_delivery.route_id and r.paused_at is not null));
end
$$;
comment on function tidemark.closed_delivery(text, text, integer) is
    'What keeps the worker from delivering events of this domain on the route: a gate of the worker '
    '(tidemark.closed_gate), that of the domain, or "route CODE" where the route is paused. tidemark.gate_opening '
    'says how to open it. Without a route: a gate. Null: nothing does.';
grant execute on function tidemark.closed_delivery(text, text, integer) to tidemark_reader, tidemark_executor;
