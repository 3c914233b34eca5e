create or replace function tidemark.decided(worker_id integer, route_id integer, first_seq bigint, last_seq bigint)
returns int8multirange
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return (select coalesce(range_agg(d.seqs), '{}') from (
        select d.seqs from tidemark.decision d
        where d.worker_id = decided.worker_id and decided.route_id in (0, d.route_id)
          and d.last_seq >= decided.first_seq and d.first_seq <= decided.last_seq
        union all
        select int8multirange(int8range(a.seq, a.seq + 1)) from tidemark.attempt a
        where a.worker_id = decided.worker_id and decided.route_id in (0, a.route_id)
          and a.seq between decided.first_seq and decided.last_seq) d);
end
$$;
comment on function tidemark.decided(integer, integer, bigint, bigint) is
    'Numbers in the span that the worker has already decided for the route; for route_id 0 those it has decided for '
    'any route or none. Needed only for a cursor that was rewound.';
grant execute on function tidemark.decided(integer, integer, bigint, bigint) to tidemark_executor;
