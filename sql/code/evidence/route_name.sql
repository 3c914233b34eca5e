create or replace view tidemark.route_name as
select r.id, r.route_code from tidemark.outbound_route r
union all
select f.id, f.name from tidemark.former_name f where f.kind = 'route';
comment on view tidemark.route_name is
    'The code of each route that evidence may name, those that were deleted included.';
grant select on tidemark.route_name to tidemark_reader, tidemark_executor;
