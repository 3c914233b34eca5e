create or replace function tidemark.decided(worker_id integer, route_id integer, first_seq bigint, last_seq bigint)
returns int8multirange
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_nestloop = on
set jit = off
as $$
begin
    if decided.route_id <> 0 then
        return (select coalesce(range_agg(d.seqs), '{}') from (
            select d.seqs
            from tidemark.decisions(decided.worker_id, decided.route_id, decided.first_seq, decided.last_seq) d
            union all
            select int8multirange(int8range(a.seq, a.seq + 1)) from tidemark.attempt a
            where a.worker_id = decided.worker_id and a.route_id = decided.route_id
              and a.seq >= decided.first_seq and a.seq <= decided.last_seq) d);
    end if;
    return (select coalesce(range_agg(d.seqs), '{}') from (
        select d.seqs from tidemark.decisions(decided.worker_id, null, decided.first_seq, decided.last_seq) d
        union all
        select int8multirange(int8range(a.seq, a.seq + 1))
        from tidemark.evidence_routes(decided.worker_id, decided.first_seq, decided.last_seq) r
        cross join lateral (
            select a.seq from tidemark.attempt a
            where a.worker_id = r.worker_id and a.route_id = r.route_id
              and a.seq >= decided.first_seq and a.seq <= decided.last_seq
            offset 0) a) d);
end
$$;
comment on function tidemark.decided(integer, integer, bigint, bigint) is
    'Numbers in the span that the worker has already decided for the route; for route_id 0 those it has decided for '
    'any route or none. Needed only for a cursor that was rewound.';
grant execute on function tidemark.decided(integer, integer, bigint, bigint) to tidemark_executor;
