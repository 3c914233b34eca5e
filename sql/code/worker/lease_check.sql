create or replace function tidemark.lease_check(
    worker text, epoch bigint, source text default 'outbox', shard integer default 0)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
    -- The fence against an owner that was paused or replaced: compare the epoch, and keep the row locked to the end of
    -- this transaction, so that no other owner can take over between this check and the commit. A statement that its
    -- client no longer waits for may come here after the release: it must not renew a lease that has been given back.
    perform from tidemark.heartbeat h
    where h.executor_id = tidemark.executor_id(lease_check.worker, lease_check.source, lease_check.shard)
      and h.lease_epoch = lease_check.epoch and h.last_status is distinct from 'released'
      -- A standby that was promoted has the epoch, and perhaps not what its owner has read: other events have these
      -- numbers.
      and h.lease_timeline = tidemark.timeline()
    for update;
    if not found then
        perform tidemark.lease_lost(lease_check.worker, lease_check.epoch);
    end if;
end
$$;
comment on function tidemark.lease_check(text, bigint, text, integer) is
    'Locks the worker''s lease for this transaction. Raises TM011 where the lease has another epoch by now, was given '
    'back, or was taken on another timeline of the server.';
grant execute on function tidemark.lease_check(text, bigint, text, integer) to tidemark_executor;
