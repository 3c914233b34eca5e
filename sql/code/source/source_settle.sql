create or replace function tidemark.source_settle(
    plan tidemark.source_plan,
    epoch bigint,
    page tidemark.source_page,
    failed tidemark.failed_row[],
    splits integer,
    began timestamptz,
    recount jsonb)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    s constant tidemark.source := plan.source;
    w constant tidemark.worker := plan.worker;
    c tidemark.worker_cursor;
    full_ constant boolean := page.examined >= plan.rows_limit;
    executor constant text := tidemark.executor_id(w.worker, s.source, (plan.cursor).shard);
    dead bigint;
    blocked_by text;
    more boolean;
    summary jsonb;
    checkpoint jsonb;
begin
    perform tidemark.lease_check(w.worker, source_settle.epoch, s.source, (plan.cursor).shard);
    select x.* into c from tidemark.worker_cursor x
    where x.worker = w.worker and x.source = s.source and x.shard = (plan.cursor).shard for update;
    if tidemark.source_place(c.watermark_ts, c.watermark_id) is distinct from (plan.cursor).decided_through
        or c.decided_through is distinct from (plan.cursor).decided_through
        or plan.step = 'forward' and s.safety not in ('sequence', 'capture') and page.last_ts < c.watermark_ts
    then
        raise exception using errcode = 'TM012',
            message = format('a page that ends at %s cannot be settled behind the watermark %s',
                             tidemark.source_place(page.last_ts, page.last_id), c.decided_through),
            hint = 'Nothing was recorded.';
    end if;

    -- A pass came through, so the reason why the worker was held is over.
    if c.last_run_summary ->> 'status' = 'held' then
        update tidemark.finding f set closed_at = clock_timestamp()
        where f.subject = tidemark.executor_id(c.worker, c.source, c.shard) and f.closed_at is null
          and f.kind in ('source_changed', 'source_misconfigured', 'source_unreadable', 'source_clock_back',
                         'cursor_watermark_regression');
    end if;
    if plan.suspects is not null then
        if (c.metadata -> 'suspects' -> plan.step ->> 'cuts')::integer >= 5 then
            perform tidemark.finding_close('worker_failing', executor);
        end if;
        c.metadata := tidemark.source_suspects(plan, page, c.metadata, clock_timestamp() - began);
    end if;
    -- Store the counts before the end of the sweep compares them with the table.
    if page.counts is not null then
        insert into tidemark.source_count as k (worker_id, source, shard, bucket, items)
        select w.id, s.source, (plan.cursor).shard, b.key::timestamptz, b.value::bigint
        from jsonb_each_text(page.counts) b order by 4
        on conflict (worker_id, source, shard, bucket) do update set items = k.items + excluded.items;
    end if;
    dead := tidemark.source_failures(plan, page, failed);
    case plan.step
    when 'forward' then
        if s.safety in ('sequence', 'capture') then
            c := tidemark.source_numbers(plan, page, c);
            c.metadata := c.metadata || case when plan.gone is null then '{}'
                                             else jsonb_build_object('gone', plan.gone::text) end;
            if not isempty(c.fenced) and (select count(*) from unnest(c.holes + c.fenced)) >= w.hole_limit then
                blocked_by := coalesce(tidemark.fence_blame(c.fence, tidemark.source_fence(s)),
                                       'a transaction that has just ended');
            end if;
        elsif page.examined > 0 then
            c.watermark_ts := page.last_ts;
            c.watermark_id := page.last_id;
        end if;
        c.horizon := greatest(c.horizon, plan.horizon);
        if not full_ and c.phase = 'seeding' then
            c.phase := 'reconciling';
        elsif not full_ and c.phase = 'reconciling' and s.safety in ('sequence', 'capture')
            and isempty(c.holes + c.fenced) then
            c.phase := 'incremental';
        end if;
    when 'sweep' then
        c := tidemark.source_swept(plan, page, c, recount);
    else
    end case;

    if page.ledger_xids is not null then
        insert into tidemark.source_ledger as l (worker_id, source, shard, item_id, xid)
        -- Two rows may have the same id (of a partitioned table, in two partitions).
        select distinct on (n.id) w.id, s.source, c.shard, n.id, n.xid::xid8
        from unnest(page.ledger_ids, page.ledger_xids) n (id, xid)
        where n.xid is not null
        order by n.id, n.xid::xid8 desc
        on conflict (worker_id, source, shard, item_id) do update set xid = excluded.xid;
    end if;

    if blocked_by is not null then
        perform tidemark.finding_open('cursor_holes', executor, 'high',
            format('the cursor waits: too many numbers below it are kept open by %s', blocked_by));
    elsif c.last_run_summary ? 'blocked_by' then
        perform tidemark.finding_close('cursor_holes', executor);
    end if;
    c.metadata := tidemark.source_storm(plan, page, c.metadata, recount, plan.step = 'forward' and not full_);

    -- Keep the handler's last result until it returns another: neither a pass without rows nor a page whose rows have
    -- all failed erases it.
    checkpoint := c.last_run_summary -> 'checkpoint';
    if page.taken > 0 then
        checkpoint := case jsonb_typeof(page.result) when 'object' then page.result else coalesce(checkpoint, '{}') end
            || jsonb_build_object(
            'batch_count', coalesce((checkpoint ->> 'batch_count')::bigint, 0) + 1, 'started_at', began,
            'ended_at', clock_timestamp());
    end if;

    more := full_ or plan.step = 'retry' or c.phase <> (plan.cursor).phase or c.sweep ? 'next_xmin'
        or plan.step = 'forward' and s.safety in ('clock', 'declared') and c.phase = 'reconciling';
    summary := jsonb_strip_nulls(jsonb_build_object(
        'worker', w.worker, 'source', s.source, 'shard', c.shard, 'status', 'ran', 'step', plan.step,
        'rows', page.examined, 'taken', page.taken - cardinality(failed), 'failed', cardinality(failed),
        'dead_lettered', dead, 'late', page.late, 'coalesced', page.fresh - page.taken, 'splits', splits,
        'phase', c.phase, 'watermark_ts', c.watermark_ts, 'watermark_id', c.watermark_id,
        'blocked_by', blocked_by, 'held_back_by', plan.detail, 'result', page.result, 'more', more, 'started_at', began,
        'ended_at', clock_timestamp()));
    update tidemark.worker_cursor x
    set watermark_ts = c.watermark_ts, watermark_id = c.watermark_id,
        decided_through = tidemark.source_place(c.watermark_ts, c.watermark_id),
        holes = c.holes, fenced = c.fenced, fence = c.fence, horizon = c.horizon, sweep = c.sweep,
        verified_through = c.verified_through, phase = c.phase, metadata = c.metadata,
        last_run_at = clock_timestamp(),
        last_run_summary = summary || jsonb_strip_nulls(jsonb_build_object('checkpoint', checkpoint)),
        events_seen = x.events_seen + case plan.step when 'retry' then 0 else page.fresh end,
        attempts_written = x.attempts_written + page.taken,
        dead_lettered = x.dead_lettered + dead, updated_at = clock_timestamp()
    where x.worker = c.worker and x.source = c.source and x.shard = c.shard;
    perform tidemark.executor_beat(array[executor], 'ok', plan.lease);
    return summary;
end
$$;
comment on function tidemark.source_settle(tidemark.source_plan, bigint, tidemark.source_page, tidemark.failed_row[],
                                           integer, timestamptz, jsonb) is
    'Records the outcome of a page of a source and moves the cursor, in the transaction that handled the page. Returns '
    'the summary of the pass. last_run_summary keeps it with the checkpoint: the handler''s last result, the start and '
    'end of the latest page that had rows, and batch_count, the number of such pages. Raises TM011 where the epoch is '
    'over, TM012 where the cursor would go back.';
grant execute on function tidemark.source_settle(tidemark.source_plan, bigint, tidemark.source_page,
                                                 tidemark.failed_row[], integer, timestamptz,
                                                 jsonb) to tidemark_executor;
