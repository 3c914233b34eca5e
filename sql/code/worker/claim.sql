create or replace function tidemark.claim(
    worker text,
    owner text default null,
    lease interval default null,
    source text default 'outbox',
    shard integer default 0,
    out status text,
    out detail text,
    out epoch bigint,
    out settles bigint,
    out handler text,
    out unfinished boolean)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    executor constant text := tidemark.executor_id(claim.worker, claim.source, claim.shard);
    beat tidemark.heartbeat;
    at_ record;
    got record;
begin
    perform tidemark.session_check('a worker', 'each of its statements must see what was committed before it.'),
            tidemark.flush_on_commit();
    if claim.lease not between interval '3 seconds' and interval '1 hour' then
        raise exception using errcode = 'TM005',
            message = format('lease is %s, and must be from 3 seconds to 1 hour', claim.lease);
    end if;

    select h.* into beat from tidemark.heartbeat h where h.executor_id = executor for update skip locked;
    if not found then
        status := 'busy';
        detail := 'another instance is in the middle of a pass';
    elsif beat.lease_until > clock_timestamp() and beat.lease_owner is distinct from claim.owner then
        status := 'busy';
        detail := format('leased by %s until %s', beat.lease_owner, beat.lease_until);
    end if;
    -- After the lock, so that it sees what the pass before left.
    select w.handler, w.shards, c.settles, c.watermark_id,
           coalesce(c.rewound_to::text, c.decided_through) as left_at, tidemark.cursor_edited(c) as edited, u.unfinished
    into at_
    from tidemark.worker w
    join tidemark.worker_cursor c on c.worker = w.worker and c.source = claim.source and c.shard = claim.shard
    cross join lateral tidemark.unfinished(w.id) u
    where w.worker = claim.worker;
    if not found then
        raise exception using errcode = 'TM004',
            message = case when exists (select from tidemark.worker w where w.worker = claim.worker)
                then format('worker %s has no cursor of source %s, shard %s', claim.worker, claim.source, claim.shard)
                else format('there is no worker "%s"', claim.worker) end,
            hint = case when claim.source = 'outbox' then 'Workers: select worker from tidemark.worker;'
                else 'Sources of workers: select worker, source, shard from tidemark.worker_cursor;' end;
    end if;
    handler := at_.handler;
    unfinished := at_.unfinished;
    if claim.source = 'outbox' and claim.owner is not null and at_.shards > 1 then
        -- The row is locked until the end, so that an instance claims one shard after the other.
        insert into tidemark.worker_instance as i (worker, owner, seen_at, seen_until)
        values (claim.worker, claim.owner, clock_timestamp(), clock_timestamp() + claim.lease)
        on conflict (worker, owner) do update set seen_at = excluded.seen_at, seen_until = excluded.seen_until;
        -- Of instances that were killed.
        delete from tidemark.worker_instance i
        where i.ctid = any (array(
            select j.ctid from tidemark.worker_instance j
            where j.worker = claim.worker and j.seen_until < clock_timestamp() - interval '1 hour'
            for update skip locked));
        got := tidemark.shard_share(claim.worker, claim.owner);
        if status is null and cardinality(array_remove(got.held, claim.shard)) >= got.share then
            status := 'busy';
            detail := format('this instance has its share of the shards, %s', got.share);
        end if;
    end if;
    if status = 'busy' then
        return;
    end if;
    settles := at_.settles;
    detail := tidemark.closed_gate(claim.worker);
    status := case when detail is null then 'claimed' else 'closed' end;
    if status = 'claimed' and at_.edited then
        status := 'held';
        detail := format('the watermark is %s, and was left at %s: it was edited by hand, or restored. Accept a '
                         'place with tidemark.worker_rewind', at_.watermark_id, at_.left_at);
        perform tidemark.finding_open('cursor_watermark_regression',
                                      tidemark.cursor_name(claim.worker, claim.shard), 'high', detail);
    elsif status = 'claimed' and beat.last_status = 'held' then
        perform tidemark.finding_close('cursor_watermark_regression',
                                       tidemark.cursor_name(claim.worker, claim.shard));
    end if;
    if status = 'claimed' then
        -- The epoch rises with every acquisition, also by the same owner: an earlier holder of the lease that was only
        -- paused can settle nothing.
        -- The same update beats: each pass from SQL begins here.
        beat.lease_epoch := beat.lease_epoch + 1;
        if beat.lease_timeline <> tidemark.timeline() then
            -- The server may lack the last claims of the one before it: their epochs must not be given again, nor those
            -- that another standby gives. Receivers see rising ones.
            beat.lease_epoch := beat.lease_epoch + ((1 + random()) * (1 << 20))::bigint;
            perform tidemark.server_note(beat.lease_timeline);
        end if;
        update tidemark.heartbeat h
        set lease_epoch = beat.lease_epoch, lease_timeline = tidemark.timeline(), lease_owner = claim.owner,
            lease_until = clock_timestamp() + claim.lease,
            last_beat_at = clock_timestamp(), ticks_total = h.ticks_total + 1, last_status = 'ok', current_job_id = null
        where h.executor_id = executor;
    else
        perform tidemark.executor_beat(array[executor], status, interval '0');
    end if;
    epoch := beat.lease_epoch;
end
$$;
comment on function tidemark.claim(text, text, interval, text, integer) is
    'Takes the worker''s cursor: for this transaction, or with owner and lease (1 second to 1 hour) until the lease '
    'ends. owner must name exactly one instance of one process. status claimed: go on; epoch fences every older owner. '
    'closed: detail names the gate; the cursor was not taken. held: the watermark of the log was edited by hand, as '
    'detail says; the cursor was not taken, and the finding cursor_watermark_regression stays open until an operator '
    'accepts the place (tidemark.worker_rewind). busy: detail names the owner, or owner has '
    'its share of the shards (tidemark.shard_share). handler is the worker''s; unfinished: it has more to do than to '
    'read the log (tidemark.unfinished). Beats unless it is busy. Raises TM004 '
    '(unknown worker), TM005, TM006 (isolation level), TM007 (standby).';
grant execute on function tidemark.claim(text, text, interval, text, integer) to tidemark_executor;
