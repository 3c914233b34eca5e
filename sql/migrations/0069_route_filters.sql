-- Whether a worker has a route with a filter, asked before each page; and functions that take several parked commands now.

set local role tidemark_owner;

create index outbound_route_filter on tidemark.outbound_route (worker)
    where key_filter is not null or payload_filter is not null;

drop function if exists tidemark.command_release;
drop function if exists tidemark.command_retry_next;
