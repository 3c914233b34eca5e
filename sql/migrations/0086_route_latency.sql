-- The latency of a route is that of a sample of a given size.

set local role tidemark_owner;

drop function if exists tidemark.route_latency;
