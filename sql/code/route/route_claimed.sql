-- A security definer: the filters of the route read payloads, but it returns none.
create or replace function tidemark.route_claimed(route_code text, most integer)
returns table (event_id uuid, seq bigint)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
    select o.event_id, o.seq
    from tidemark.outbound_route r,
         lateral (select * from tidemark.outbox o order by o.seq desc limit most) o
    where r.route_code = route_claimed.route_code and tidemark.route_matches(r, o.*)
    order by o.seq desc
    limit 1
$$;
comment on function tidemark.route_claimed(text, integer) is
    'The latest of the last most events that the route claims.';
grant execute on function tidemark.route_claimed(text, integer) to tidemark_reader, tidemark_executor;
