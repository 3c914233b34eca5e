create or replace function tidemark.release_keys(worker_id integer, routes integer[], keys text[])
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
    -- Settling is serial (tidemark.lease_check): no other settle can queue an event behind one that is just leaving,
    -- where it would wait forever. The update goes by ctid: a join with a table that grew since it was last analyzed
    -- would loop over the whole table for each key.
    update tidemark.pending p
    set next_attempt_at = clock_timestamp()
    where p.ctid = any (array(
        select first.ctid
        from unnest(release_keys.routes, release_keys.keys) k (route_id, key)
        cross join lateral (
            select q.ctid, q.next_attempt_at, q.held from tidemark.pending q
            -- Only the index of keys has this order. The primary key has that by q.seq alone, and seems as good where
            -- statistics say that all that waits is of one key.
            where q.worker_id = release_keys.worker_id and q.route_id = k.route_id and q.key between k.key and k.key
              and not q.replay
            order by q.key, q.seq limit 1) first
        where first.next_attempt_at = 'infinity' and not first.held));
end
$$;
comment on function tidemark.release_keys(integer, integer[], text[]) is
    'Makes the first pending event of each key (given with its route) due: no event is before it any longer.';
