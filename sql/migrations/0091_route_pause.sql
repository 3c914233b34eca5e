-- breaking: workers of before do not know the pause of a route, and would deliver fresh events of a paused one.
-- A single route may be paused.

set local role tidemark_owner;

alter table tidemark.outbound_route add column paused_at timestamptz;
comment on column tidemark.outbound_route.paused_at is 'Since when no delivery of the route begins (tidemark.route_pause): its events wait. Null (default): it is not paused.';

-- Its parameters change.
drop function if exists tidemark.closed_delivery;
