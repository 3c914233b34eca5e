create or replace function tidemark.release(
    worker text, epoch bigint, source text default 'outbox', shard integer default 0)
returns boolean
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
    with released as (
        update tidemark.heartbeat h
        set lease_owner = null, lease_until = null, last_beat_at = clock_timestamp(), last_status = 'released'
        where h.executor_id = tidemark.executor_id(release.worker, release.source, release.shard)
          and h.lease_epoch = release.epoch
        returning h.executor_id)
    select exists (select from released)
$$;
comment on function tidemark.release(text, bigint, text, integer) is
    'Gives the lease back early, so that another instance need not wait for its end. False: the lease had another '
    'epoch by then.';
grant execute on function tidemark.release(text, bigint, text, integer) to tidemark_executor;
