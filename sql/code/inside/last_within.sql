create or replace function tidemark.last_within(seqs int8multirange, max_bytes bigint)
returns bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
    stored bigint;
    packed bigint;
    total bigint := 0;
    last bigint;
    n bigint;
begin
    -- Sizes as stored cost no look at the payloads. They are the real ones where nothing is compressed, as small events
    -- never are.
    select sum(s.stored), sum(s.packed) into stored, packed
    from unnest(seqs) r
    cross join lateral (
        select sum(pg_column_size(o.payload)) as stored, count(pg_column_compression(o.payload)) as packed
        from tidemark.outbox o where o.seq >= lower(r) and o.seq < upper(r)) s;
    if packed = 0 and stored <= max_bytes then
        return null;
    end if;
    foreach n in array tidemark.multirange_numbers(seqs) loop
        -- One at a time: no more is unpacked than fits.
        total := total + coalesce((select tidemark.payload_bytes(o.payload) from tidemark.outbox o where o.seq = n), 0);
        if total > max_bytes and last is not null then
            return last;
        end if;
        last := n;
    end loop;
    return null;
end
$$;
comment on function tidemark.last_within(int8multirange, bigint) is
    'The number of the last of these events, in their order, that fits into max_bytes of payload together with those '
    'before it. The first event always fits. Null: all fit.';
grant execute on function tidemark.last_within(int8multirange, bigint) to tidemark_executor;
