create or replace function tidemark.command_line(services text[], idempotency_keys text[], most integer)
returns setof tidemark.command_parked
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_sort = off
set jit = off
as $$
#variable_conflict use_column
begin
    return query
    select (l.parked).*
    from unnest(services, idempotency_keys) with ordinality h (service, idempotency_key, n)
    -- Only the primary key has this order.
    cross join lateral (
        select p.key, p.position from tidemark.command_parked p
        where p.service = h.service and p.idempotency_key between h.idempotency_key and h.idempotency_key
        order by p.idempotency_key limit 1) p
    cross join lateral (
        select q as parked,
               bool_and(q.idempotency_key = h.idempotency_key or q.sqlstate is null and exists (
                   select from tidemark.command k
                   where k.service = q.service and k.command = q.call ->> 'command'
                     and k.version = (q.call ->> 'command_version')::integer and k.enabled and not k.dry_run))
                   over (order by q.position) as ready
        from (
            select q.* from tidemark.command_parked q
            where q.service = h.service and q.key = p.key and q.position >= p.position
            order by q.position limit command_line.most) q) l
    where l.ready
    order by h.n, (l.parked).position limit command_line.most;
end
$$;
comment on function tidemark.command_line(text[], text[], integer) is
    'These parked commands, and behind each those of its ordering key, up to the first that is off or has failed '
    'before; in their order, at most so many.';
