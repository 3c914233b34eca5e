create or replace function tidemark.worker_routes(
    worker text,
    out routes tidemark.outbound_route[],
    out filtered tidemark.outbound_route[])
-- Stable, so that it sees what the statement sees that calls it: tidemark.read_outbox rests on it.
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
begin
    -- Of the other workers' routes only those that could make one of ours ambiguous: none, if none is exclusive.
    select coalesce(array_agg(r order by r.id), '{}'),
           coalesce(array_agg(r order by r.id)
                    filter (where r.key_filter is not null or r.payload_filter is not null), '{}')
    into routes, filtered
    from tidemark.outbound_route r
    where r.worker = worker_routes.worker
       or r.enabled and exists (select from tidemark.outbound_route x where x.exclusive) and exists (
            select from tidemark.outbound_route o
            where o.worker = worker_routes.worker and o.target_kind = r.target_kind and o.target_ref = r.target_ref
              and (o.exclusive or r.exclusive));
end
$$;
comment on function tidemark.worker_routes(text) is
    'The routes that decide on the events of a worker: its own, and those of others that share a target with one of '
    'them where either is exclusive. filtered are those of them with a key_filter or payload_filter.';
grant execute on function tidemark.worker_routes(text) to tidemark_executor;
