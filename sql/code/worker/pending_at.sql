create or replace function tidemark.pending_at(worker_id integer, route_id integer, seqs int8multirange)
returns tid[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
set jit = off
as $$
begin
    -- One lookup in the primary key for each event. A join would be planned by statistics of a table that is empty one
    -- minute and large the next, and would then read the whole table for each number.
    return array(
        select q.ctid
        from unnest(tidemark.multirange_numbers(pending_at.seqs)) n
        cross join lateral (
            select p.ctid from tidemark.pending p
            where p.worker_id = pending_at.worker_id and p.route_id = pending_at.route_id and p.seq = n limit 1) q);
end
$$;
comment on function tidemark.pending_at(integer, integer, int8multirange) is
    'The row locations of these events in tidemark.pending, valid only in this transaction.';
