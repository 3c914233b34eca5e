-- A decision meets the span if it ends in it or after it, and begins before its end. The primary key has no bound for
-- the second: all that is later would be read. But what is narrow and begins before the end of the span also ends soon
-- after it, and what is wide is in an index of its own.
create or replace function tidemark.decisions(of_worker integer, of_route integer, from_seq bigint, to_seq bigint)
returns setof tidemark.decision
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_nestloop = on
set jit = off
as $$
declare
    -- As in the condition of the index decision_wide, which the planner knows by its literal alone.
    wide constant bigint := 10000;
    -- Nothing may overflow.
    high constant bigint := least(to_seq, 9223372036854775807 - wide);
begin
    if from_seq <= high then
        if of_route is not null then
            return query
            select d.* from tidemark.decision d
            where d.worker_id = of_worker and d.route_id = of_route and d.last_seq >= from_seq
              and d.last_seq < high + wide and d.first_seq <= high and d.last_seq - d.first_seq < wide;
        else
            return query
            select d.* from tidemark.evidence_routes(of_worker, from_seq, high + wide) r
            cross join lateral (
                select n.* from tidemark.decision n
                where n.worker_id = r.worker_id and n.route_id = r.route_id and n.last_seq >= from_seq
                  and n.last_seq < high + wide and n.first_seq <= high and n.last_seq - n.first_seq < wide
                offset 0) d;
        end if;
        -- No condition inside that the primary key has too, or the planner might take that one.
        return query
        select d.* from (
            select n.* from tidemark.decision n
            where n.last_seq - n.first_seq >= 10000
              and int8range(n.first_seq, n.last_seq, '[]') && int8range(from_seq, high, '[]')
            offset 0) d
        where d.worker_id = coalesce(of_worker, d.worker_id) and d.route_id = coalesce(of_route, d.route_id);
    end if;
end
$$;
comment on function tidemark.decisions(integer, integer, bigint, bigint) is
    'The decisions of the worker (null: of all) on the route (null: on any or none) whose numbers may lie in the span.';
