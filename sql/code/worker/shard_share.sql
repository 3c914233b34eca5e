create or replace function tidemark.shard_share(worker text, owner text, out share integer, out held integer[])
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    at constant timestamptz := clock_timestamp();
    shards constant integer := (select w.shards from tidemark.worker w
                                where w.worker = shard_share.worker and w.source = 'outbox');
begin
    if shards > 1 then
        with lease as (
            select n as shard, h.lease_owner as owner from generate_series(0, shards - 1) n
            join tidemark.heartbeat h on h.executor_id = tidemark.executor_id(shard_share.worker, 'outbox', n)
            where h.lease_until > at and h.lease_owner is not null
        ), instance as (
            select l.owner from lease l
            union
            select i.owner from tidemark.worker_instance i
            where i.worker = shard_share.worker and i.seen_until > at
              and i.seen_at <= at -- else the clock was set back since, and it may be dead
        )
        select ceil(shards::numeric / greatest(count(*), 1)), array(
            select l.shard from lease l where l.owner = shard_share.owner order by l.shard)
        into share, held
        from instance i;
    end if;
end
$$;
comment on function tidemark.shard_share(text, text) is
    'How many shards of the worker an instance may have, which is all of them divided by the instances that have one '
    'or wait for one, rounded up; and which of them owner has. Nulls: the worker has no shards.';
grant execute on function tidemark.shard_share(text, text) to tidemark_reader, tidemark_executor;
