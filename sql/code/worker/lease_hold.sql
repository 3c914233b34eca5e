create or replace function tidemark.lease_hold(worker text, epoch bigint)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
    -- The lock keeps another owner from claiming the cursor until this transaction ends (tidemark.claim passes over a
    -- locked row). Unlike that of tidemark.lease_check it is shared, and lets a beat renew the lease meanwhile.
    perform from tidemark.heartbeat h
    where h.executor_id = tidemark.executor_id(lease_hold.worker, 'outbox', 0) and h.lease_epoch = lease_hold.epoch
      and h.last_status is distinct from 'released' and h.lease_timeline = tidemark.timeline()
    for key share;
    if not found then
        perform tidemark.lease_lost(lease_hold.worker, lease_hold.epoch);
    end if;
end
$$;
comment on function tidemark.lease_hold(text, bigint) is
    'Keeps the worker''s lease from being taken until this transaction ends, beside others that do so. Raises TM011 '
    'where the lease has another epoch by now, was given back, or was taken on another timeline of the server.';
grant execute on function tidemark.lease_hold(text, bigint) to tidemark_executor;
