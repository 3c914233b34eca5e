create or replace function tidemark.wave(numbers bigint[])
returns tidemark.outbox[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
begin
    -- A run of neighbours is one index range, as in tidemark.events. Rows that come by way of that function cost twice
    -- as much.
    if numbers[cardinality(numbers)] - numbers[1] + 1 = cardinality(numbers) then
        return array(select o from tidemark.outbox o
                     where o.seq >= numbers[1] and o.seq <= numbers[cardinality(numbers)] order by o.seq);
    end if;
    -- The bounds keep it to the partitions that have them.
    return array(select o from tidemark.outbox o
                 where o.seq >= numbers[1] and o.seq <= numbers[cardinality(numbers)] and o.seq = any (numbers)
                 order by o.seq);
end
$$;
comment on function tidemark.wave(bigint[]) is
    'Events by number (given in rising order), in the order of numbers: what an SQL target gets that takes a batch.';
grant execute on function tidemark.wave(bigint[]) to tidemark_executor;
