create or replace function tidemark.claim(worker text, out status text, out detail text, out epoch bigint)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    executor constant text := claim.worker || '/outbox/0';
    beat tidemark.heartbeat;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception using errcode = 'TM006',
            message = format('a worker cannot run in a transaction that is %s', current_setting('transaction_isolation')),
            hint = 'Use READ COMMITTED: each of its statements must see what was committed before it.';
    end if;
    if pg_is_in_recovery() then
        raise exception using errcode = 'TM007', message = 'a worker cannot run on a standby',
            hint = 'Connect to the primary.';
    end if;
    if not exists (select from tidemark.worker_cursor c where c.worker = claim.worker) then
        raise exception using errcode = 'TM004', message = format('there is no worker "%s"', claim.worker),
            hint = 'Workers: select worker from tidemark.worker;';
    end if;

    -- What leaves from here on (a notification, a delivery) must not be taken back by a crash. Waiting for
    -- our own commit to reach the disk makes every commit before it durable too, so an event whose writer
    -- did not wait for the disk cannot be handled and then un-happen.
    if current_setting('synchronous_commit') in ('off', 'local') then
        perform set_config('synchronous_commit', 'on', true);
    end if;

    select h.* into beat from tidemark.heartbeat h where h.executor_id = executor for update skip locked;
    if not found then
        status := 'busy';
        detail := 'another instance is in the middle of a pass';
        return;
    end if;
    if beat.lease_until > clock_timestamp() then
        status := 'busy';
        detail := format('leased by %s until %s', beat.lease_owner, beat.lease_until);
        return;
    end if;

    detail := tidemark.closed_gate(claim.worker);
    status := case when detail is null then 'claimed' else 'closed' end;
    -- The epoch rises with every acquisition, the same owner's too: whoever held the lease before, and was
    -- only paused, can settle nothing any more.
    update tidemark.heartbeat h
    set last_beat_at = clock_timestamp(), ticks_total = ticks_total + 1, last_status = case claim.status when 'claimed' then 'ok' else claim.status end,
        lease_epoch = lease_epoch + (claim.status = 'claimed')::integer
    where h.executor_id = executor
    returning h.lease_epoch into epoch;
end
$$;
comment on function tidemark.claim(text) is 'Takes the worker''s cursor for this transaction. status claimed: go on, epoch fences every older owner. closed: detail names the gate. busy: detail says who has it. Beats either way. Raises TM004 (unknown worker), TM006 (isolation level), TM007 (standby).';
revoke all on function tidemark.claim(text) from public;
grant execute on function tidemark.claim(text) to tidemark_executor;
