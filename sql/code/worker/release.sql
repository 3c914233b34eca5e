create or replace function tidemark.release(
    worker text, epoch bigint, source text default 'outbox', shard integer default 0)
returns boolean
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    owner_ text;
    executor constant text := tidemark.executor_id(release.worker, release.source, release.shard);
begin
    select h.lease_owner into owner_ from tidemark.heartbeat h
    where h.executor_id = executor and h.lease_epoch = release.epoch for update;
    if owner_ is not null then
        -- An instance that goes on has other shards, or says again that it waits for one.
        delete from tidemark.worker_instance i where i.worker = release.worker and i.owner = owner_;
    end if;
    return owner_ is not null and tidemark.executor_beat(array[executor], 'released', '0') is not null;
end
$$;
comment on function tidemark.release(text, bigint, text, integer) is
    'Gives the lease back early, so that another instance need not wait for its end. False: the lease had another '
    'epoch by then.';
grant execute on function tidemark.release(text, bigint, text, integer) to tidemark_executor;
