create or replace function tidemark.lease_end(worker text, source text, shard integer default null)
returns void
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
    -- In the order of all that lock several (tidemark.pending_claim).
    select from tidemark.heartbeat h
    where h.executor_id in (
        select tidemark.executor_id(c.worker, c.source, c.shard) from tidemark.worker_cursor c
        where c.worker = lease_end.worker and c.source = lease_end.source
          and c.shard = coalesce(lease_end.shard, c.shard))
    order by h.executor_id for update;
    update tidemark.heartbeat h set lease_epoch = lease_epoch + 1, lease_until = null, lease_owner = null
    from tidemark.worker_cursor c
    where c.worker = lease_end.worker and c.source = lease_end.source
      and c.shard = coalesce(lease_end.shard, c.shard)
      and h.executor_id = tidemark.executor_id(c.worker, c.source, c.shard);
$$;
comment on function tidemark.lease_end(text, text, integer) is
    'Ends the epoch of a worker''s passes of a source that are under way (of one shard, or of all), so that they '
    'cannot settle what they read from the old place. A move of a cursor calls it, then locks the cursor: a '
    'pass locks in the same order. Waits for a pass that is settling.';
