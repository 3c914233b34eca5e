-- Inlined by its callers, so it has no search_path.
create or replace function tidemark.route_delivers(route tidemark.outbound_route)
returns boolean
language sql immutable parallel safe
as $$
    select route.enabled and not route.dry_run and route.paused_at is null
$$;
comment on function tidemark.route_delivers(tidemark.outbound_route) is
    'True where deliveries of this route may begin, as far as the route itself says: it is enabled, not in dry run '
    'and not paused.';
grant execute on function tidemark.route_delivers(tidemark.outbound_route) to tidemark_reader, tidemark_executor;
