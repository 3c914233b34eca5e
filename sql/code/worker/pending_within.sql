create or replace function tidemark.pending_within(due tidemark.pending[], max_bytes bigint)
returns tidemark.pending[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
    stored bigint;
    packed bigint;
    total bigint := 0;
    kept tidemark.pending[] := '{}';
    p tidemark.pending;
begin
    if cardinality(due) <= 1 then
        return due;
    end if;
    select sum(pg_column_size(s.payload)), count(pg_column_compression(s.payload)) into stored, packed
    from unnest(due) d
    left join tidemark.dead_letter l on l.id = d.dead_letter_id
    cross join lateral (
        select o.payload from tidemark.outbox o where coalesce(l.payload_in_log, true) and o.seq = d.seq
        union all
        select l.event_snapshot where not l.payload_in_log) s;
    if packed = 0 and stored <= max_bytes then
        return due;
    end if;
    -- Routes take turns, each in its own order, so that large events of one route do not keep out the others.
    for p in
        select (q.d).* from (
            select d, row_number() over (partition by (d).route_id order by n) as turn
            from generate_subscripts(due, 1) n
            cross join lateral (select due[n] as d) e) q
        order by q.turn
    loop
        total := total + coalesce(
            (select tidemark.payload_bytes(l.event_snapshot) from tidemark.dead_letter l
             where l.id = p.dead_letter_id and not l.payload_in_log),
            (select tidemark.payload_bytes(o.payload) from tidemark.outbox o where o.seq = p.seq), 0);
        exit when total > max_bytes and cardinality(kept) > 0;
        kept := kept || p;
    end loop;
    return kept;
end
$$;
comment on function tidemark.pending_within(tidemark.pending[], bigint) is
    'The pending deliveries that fit into max_bytes of payload. Routes take turns, each in its order; the first '
    'delivery always fits.';
