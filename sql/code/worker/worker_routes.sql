-- Inlined by its callers, so it has no search_path, and sees what the statement sees that calls it:
-- tidemark.read_outbox rests on it.
create or replace function tidemark.worker_routes(worker text)
returns table (routes tidemark.outbound_route[], filtered tidemark.outbound_route[])
language sql stable
as $$
    select coalesce(pg_catalog.array_agg(r.route), '{}'),
           coalesce(pg_catalog.array_agg(r.route) filter (
               where (r.route).key_filter is not null or (r.route).payload_filter is not null), '{}')
    from (
        select o as route from tidemark.outbound_route o where o.worker = worker_routes.worker
        union all
        -- Of the other workers' routes only those that could make one of ours ambiguous: none, if none is exclusive.
        select o from tidemark.outbound_route o
        where o.worker <> worker_routes.worker and o.enabled
          and exists (select from tidemark.outbound_route x where x.exclusive)
          and exists (
              select from tidemark.outbound_route r
              where r.worker = worker_routes.worker and r.target_kind = o.target_kind and r.target_ref = o.target_ref
                and (r.exclusive or o.exclusive))) r
$$;
comment on function tidemark.worker_routes(text) is
    'The routes that decide on the events of a worker: its own, and those of others that share a target with one of '
    'them where either is exclusive. filtered are those of them with a key_filter or payload_filter.';
grant execute on function tidemark.worker_routes(text) to tidemark_executor;
