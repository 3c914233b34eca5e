create or replace function tidemark.evidence_routes(of_worker integer, first_seq bigint, last_seq bigint)
returns table (worker_id integer, route_id integer)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_nestloop = on
set jit = off
as $$
#variable_conflict use_column
declare
    low bigint;
    high bigint;
begin
    -- Whole partitions: a condition that all their rows fulfil lets the others be left out, and makes no step read
    -- more than one row.
    select max(b.seq) filter (where b.seq <= evidence_routes.first_seq),
           min(b.seq) filter (where b.seq > evidence_routes.last_seq) - 1
    into low, high
    from tidemark.partitions('tidemark.decision') p cross join lateral (values (p.first_seq), (p.end_seq)) b (seq);
    low := coalesce(low, 0);
    high := coalesce(high, 9223372036854775807);
    return query
    with recursive of_decisions as (
        select coalesce(of_worker, -1) as worker_id, -1 as route_id
        union all
        select n.worker_id, n.route_id from of_decisions p cross join lateral (
            select d.worker_id, d.route_id from tidemark.decision d
            where (d.worker_id, d.route_id) > (p.worker_id, p.route_id) and d.last_seq >= low and d.last_seq <= high
            order by d.worker_id, d.route_id limit 1) n
        where n.worker_id = coalesce(of_worker, n.worker_id)
    ), of_attempts as (
        select coalesce(of_worker, -1) as worker_id, -1 as route_id
        union all
        select n.worker_id, n.route_id from of_attempts p cross join lateral (
            select a.worker_id, a.route_id from tidemark.attempt a
            where (a.worker_id, a.route_id) > (p.worker_id, p.route_id) and a.seq >= low and a.seq <= high
            order by a.worker_id, a.route_id limit 1) n
        where n.worker_id = coalesce(of_worker, n.worker_id)
    )
    select d.worker_id, d.route_id from of_decisions d where d.route_id >= 0
    union
    select a.worker_id, a.route_id from of_attempts a where a.route_id >= 0;
end
$$;
comment on function tidemark.evidence_routes(integer, bigint, bigint) is
    'Workers (null: all, or this one) and routes that have evidence in the partitions of these numbers: each pair is '
    'one step through the primary key.';
