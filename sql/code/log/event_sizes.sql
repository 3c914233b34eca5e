create or replace function tidemark.event_sizes(numbers bigint[])
returns integer[]
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
begin
    return array(
        select coalesce(tidemark.payload_bytes(o.payload), 0)
        from unnest(event_sizes.numbers) with ordinality n (seq, place)
        left join lateral (select e.payload from tidemark.outbox e where e.seq = n.seq) o on true
        order by n.place);
end
$$;
comment on function tidemark.event_sizes(bigint[]) is
    'The size in bytes of the payloads of these events (tidemark.payload_bytes), in this order.';
grant execute on function tidemark.event_sizes(bigint[]) to tidemark_executor;
