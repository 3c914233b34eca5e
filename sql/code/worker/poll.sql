-- The daemon calls this once a second for all its idle workers, instead of a pass by each that finds no work. Not a
-- security definer: others' tables are read with the rights of the role that runs the worker.
create or replace function tidemark.poll(
    owner text,
    lease interval,
    workers text[],
    sources text[],
    shards integer[],
    epochs bigint[],
    known bigint[] default null)
returns table (n integer, why text, counted bigint)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
-- One index lookup each, whatever the statistics say.
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
set row_security = off
-- A session that has locked one table must not delay other workers.
set lock_timeout = '20ms'
as $$
#variable_conflict use_column
declare
    second constant bigint := extract(epoch from clock_timestamp());
    activity tidemark.activity;
    r record;
    asked record;
    peeks boolean;
    xmin xid8;
    horizon timestamptz;
    unreadable text[] := '{}';
    rests integer[] := '{}';
    peeked boolean[] := '{}';
    sweeps xid8[] := '{}';
    horizons timestamptz[] := '{}';
begin
    perform tidemark.session_check('a worker', 'each of its statements must see what was committed before it.');
    if exists (
        -- A cursor that waits for its lease asks for no horizon.
        select from unnest(poll.sources, poll.epochs) a (source, epoch)
        join tidemark.source s on s.source = a.source
        where a.epoch is not null and s.safety = 'clock') then
        -- Read the activity once for all cursors; later statements read the data.
        activity := tidemark.oldest_transaction();
    end if;
    for r in
        select a.n::integer, a.worker, a.source, a.shard, case
                   when c.worker is null or h.executor_id is null
                       or a.source <> 'outbox'
                           and not exists (select from tidemark.source s where s.source = a.source) then 'gone'
                   when a.epoch is null then case
                       when (h.lease_until is null or h.lease_until <= clock_timestamp() or h.lease_owner = poll.owner)
                           and tidemark.closed_gate(a.worker) is null
                           and not tidemark.cursor_edited(c)
                           and (a.source <> 'outbox' or w.shards = 1 or (
                                select s.share > cardinality(array_remove(s.held, a.shard))
                                from tidemark.shard_share(a.worker, poll.owner) s))
                       then 'free' else 'waits' end
                   when h.lease_epoch <> a.epoch or h.lease_owner is distinct from poll.owner
                       or h.lease_timeline <> tidemark.timeline() then 'fenced'
               end as lease, a.known,
               -- Count before the look: what is counted later makes the next poll look again.
               case when a.source <> 'outbox' and a.epoch is not null and poll.known is not null
                         then tidemark.source_counted(a.source) end as counted
        from unnest(poll.workers, poll.sources, poll.shards, poll.epochs, poll.known)
            with ordinality a (worker, source, shard, epoch, known, n)
        left join tidemark.worker_cursor c on c.worker = a.worker and c.source = a.source and c.shard = a.shard
        left join tidemark.worker w on w.worker = a.worker
        left join tidemark.heartbeat h on h.executor_id = tidemark.executor_id(a.worker, a.source, a.shard)
        order by a.n
    loop
        why := nullif(r.lease, 'waits');
        peeks := false;
        xmin := null;
        horizon := null;
        if r.lease is null and r.source = 'outbox' then
            why := tidemark.log_next(r.worker, r.shard);
        elsif r.lease is null then
            -- Check in turns whether the table still fits, since that takes longer than all the rest. This loses
            -- nothing: a pass checks first.
            asked := tidemark.source_next(r.worker, r.source, r.shard, activity, (second + r.n) % 10 = 0);
            why := case (asked.plan).status when 'closed' then 'closed' when 'held' then asked.finding
                                            when 'go' then asked.due end;
            peeks := why is null and (asked.plan).status = 'go'
                and (asked.sweeps or r.known is null or r.known is distinct from r.counted);
        end if;
        if peeks then
            -- Note both before the peek, and only for a table that is peeked at: a later sweep skips the writes of
            -- transactions from before it.
            horizon := (asked.plan).horizon;
            xmin := case when asked.sweeps then pg_snapshot_xmin(pg_current_snapshot()) end;
            why := case when r.source = any (unreadable) then 'unreadable'
                        else tidemark.source_peek(asked.plan, asked.sweeps) end;
            if why = 'unreadable' then
                unreadable := unreadable || r.source;
            end if;
        end if;
        if why is null then
            rests := rests || r.n;
            peeked := peeked || peeks;
            sweeps := sweeps || xmin;
            horizons := horizons || horizon;
            if peeks and r.counted is not null then
                n := r.n;
                counted := r.counted;
                return next;
            end if;
        else
            counted := null;
            n := r.n;
            return next;
        end if;
    end loop;
    return query
    select b.n, 'locked', null::bigint
    from tidemark.poll_beat(poll.owner, poll.lease, poll.workers, poll.sources, poll.shards, poll.epochs,
                            rests, peeked, sweeps, horizons) b (n);
end
$$;
comment on function tidemark.poll(text, interval, text[], text[], integer[], bigint[], bigint[]) is
    'Which cursors (worker, source, shard) of a process have work, and why. For the log: as tidemark.log_next. For a '
    'table: closed, the kind of a finding, or as tidemark.source_next and tidemark.source_peek. Also fenced, locked, '
    'gone; and free, for a cursor without an epoch that waits for the lease. The caller makes a pass for each cursor '
    'returned, and the pass checks again. The other cursors stay idle: if owner holds their epoch, the poll beats, '
    'renews the lease and completes a sweep that has no rows to read; a cursor that is closed beats. Waits at most 20 '
    'ms for a lock, and reads at most one row of each table. known: what the server had counted of each table when it '
    'was last read (tidemark.source_counted): where it still counts as much, the table is not read. Null: it is read '
    'whatever was counted. Given known, the poll also returns each table that it read and that has no work: why null, '
    'and counted. Raises TM006 (isolation level), TM007 (standby).';
grant execute on function tidemark.poll(text, interval, text[], text[], integer[], bigint[], bigint[])
    to tidemark_executor;
