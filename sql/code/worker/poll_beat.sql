create or replace function tidemark.poll_beat(
    owner text,
    lease interval,
    workers text[],
    sources text[],
    shards integer[],
    epochs bigint[],
    rests integer[],
    peeked boolean[],
    sweeps xid8[],
    horizons timestamptz[])
returns setof integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
#variable_conflict use_column
declare
    now_ constant timestamptz := clock_timestamp();
    r record;
    beaten integer[] := '{}';
    wants text[]; -- workers of which owner waits for a shard
    swept integer[] := array(select r.n from unnest(rests, sweeps) r (n, xmin) where r.xmin is not null);
begin
    for r in
        -- Lock in order, and skip a row that a pass has locked: no session waits for another.
        with asleep as materialized (
            select r.n, h.executor_id, h.last_status, poll_beat.epochs[r.n] is not null as leased
            from unnest(rests) r (n)
            join tidemark.heartbeat h on h.executor_id = tidemark.executor_id(
                poll_beat.workers[r.n], poll_beat.sources[r.n], poll_beat.shards[r.n])
            where case when poll_beat.epochs[r.n] is not null
                       then h.lease_epoch = poll_beat.epochs[r.n] and h.lease_owner = poll_beat.owner
                       else h.lease_until is null or h.lease_until <= now_ end
            order by h.executor_id
            for update of h skip locked
        )
        select a.leased, case when not a.leased and a.last_status is distinct from 'held' then 'closed' end as status,
               array_agg(a.n) as ns, array_agg(a.executor_id) as executors
        from asleep a group by 1, 2
    loop
        perform tidemark.executor_beat(r.executors, r.status, case when r.leased then poll_beat.lease else '0' end);
        beaten := beaten || r.ns;
    end loop;

    -- An instance that waits for a shard says so, so that the others give up what is more than their share.
    if array_position(epochs, null) is not null then
        wants := array(
            select distinct w.worker from unnest(workers, epochs) a (worker, epoch)
            join tidemark.worker w on w.worker = a.worker
            where a.epoch is null and w.source = 'outbox' and w.shards > 1);
    end if;
    if cardinality(wants) > 0 then
        update tidemark.worker_instance i set seen_at = now_, seen_until = now_ + poll_beat.lease
        where i.ctid = any (array(
            select j.ctid from tidemark.worker_instance j
            where j.owner = poll_beat.owner
              and (j.seen_until < now_ + poll_beat.lease * 0.75 or j.seen_at > now_)
              and j.worker = any (wants) for update skip locked));
        insert into tidemark.worker_instance (worker, owner, seen_at, seen_until)
        select w, poll_beat.owner, now_, now_ + poll_beat.lease from unnest(wants) w
        on conflict do nothing;
    end if;

    -- Write now and then that no work was due: the lag of a source depends on it.
    update tidemark.worker_cursor c
    set last_run_at = now_, horizon = greatest(c.horizon, r.horizon)
    from unnest(rests, peeked, horizons) r (n, peeked, horizon)
    where r.peeked and r.n = any (beaten)
      and c.worker = poll_beat.workers[r.n] and c.source = poll_beat.sources[r.n] and c.shard = poll_beat.shards[r.n]
      and c.last_run_at < now_ - interval '5 seconds' and (r.horizon is not null or c.horizon is null);

    -- End a sweep without rows to read as tidemark.source_swept does. Its transaction was noted before the peek.
    if cardinality(swept) > 0 then
        delete from tidemark.source_ledger l
        using unnest(rests, sweeps) r (n, xmin), tidemark.worker w
        where r.xmin is not null and r.n = any (beaten)
          and w.worker = poll_beat.workers[r.n] and l.worker_id = w.id
          and l.source = poll_beat.sources[r.n] and l.shard = poll_beat.shards[r.n] and l.xid < r.xmin;
        update tidemark.worker_cursor c
        set sweep = jsonb_build_object('xmin', r.xmin::text, 'segment_xmin', r.xmin::text, 'mark', c.watermark_ts,
                                       'done_at', now_)
        from unnest(rests, sweeps) r (n, xmin)
        where r.xmin is not null and r.n = any (beaten)
          and c.worker = poll_beat.workers[r.n] and c.source = poll_beat.sources[r.n]
          and c.shard = poll_beat.shards[r.n];
    end if;
    return query
    select r.n from unnest(rests) r (n)
    where poll_beat.epochs[r.n] is not null and not r.n = any (beaten);
end
$$;
comment on function tidemark.poll_beat(
    text, interval, text[], text[], integer[], bigint[], integer[], boolean[], xid8[], timestamptz[]) is
    'For the idle cursors (rests) of a tidemark.poll: beats, renews the leases that owner holds, and records the '
    'horizon of cursors whose table was peeked at, and sweeps without rows to read. Returns the cursors whose lease it '
    'could not renew.';
grant execute on function tidemark.poll_beat(
    text, interval, text[], text[], integer[], bigint[], integer[], boolean[], xid8[], timestamptz[])
    to tidemark_executor;
