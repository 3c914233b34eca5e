create or replace view tidemark.open_letter as
select r.id as route_id, l.id, l.error_code, l.first_failed_at, l.last_failed_at
from tidemark.outbound_route r
cross join lateral (
    select l.id, l.error_code, l.first_failed_at, l.last_failed_at from tidemark.dead_letter l
    -- Only the index by route has this order. With route_id = r.id the planner reads the open letters of all routes in
    -- the order of time, where statistics say that nearly all are of one route.
    where (l.route_id, l.last_failed_at) between (r.id, '-infinity') and (r.id, 'infinity') and l.resolved_at is null
    order by l.route_id desc, l.last_failed_at desc limit 10000) l;
comment on view tidemark.open_letter is
    'The dead letters of routes that are not resolved, of each route the newest 10000. Reads an index.';
grant select on tidemark.open_letter to tidemark_reader, tidemark_executor;
