create or replace function tidemark.route_matches(route tidemark.outbound_route, event tidemark.outbox)
returns boolean
language sql immutable parallel safe
as $$
    select coalesce(
        tidemark.route_fits(route.domain, route.type, route.stream, event.domain, event.type, event.stream)
        and (route.key_filter is null or tidemark.pattern_matches(route.key_filter, event.key))
        and (route.payload_filter is null or event.payload operator(pg_catalog.@>) route.payload_filter), false)
$$;
comment on function tidemark.route_matches(tidemark.outbound_route, tidemark.outbox) is
    'True where the route claims the event, by domain, type, stream, key and payload. Its switches are not looked at.';
grant execute on function tidemark.route_matches(tidemark.outbound_route, tidemark.outbox)
    to tidemark_reader, tidemark_executor;
