create or replace function tidemark.events(seqs bigint[])
returns setof tidemark.outbox
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
begin
    -- A run of neighbours, as most batches are, is one index range.
    if seqs[cardinality(seqs)] - seqs[1] + 1 = cardinality(seqs) then
        return query select o.* from tidemark.outbox o
            where o.seq >= seqs[1] and o.seq <= seqs[cardinality(seqs)] order by o.seq;
    else
        -- The bounds keep it to the partitions that have them.
        return query select o.* from tidemark.outbox o
            where o.seq >= seqs[1] and o.seq <= seqs[cardinality(seqs)] and o.seq = any (seqs) order by o.seq;
    end if;
end
$$;
comment on function tidemark.events(bigint[]) is 'Events by number (given in rising order), in the order of numbers.';
grant execute on function tidemark.events(bigint[]) to tidemark_executor;
