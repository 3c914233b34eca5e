-- Whether a cursor of a table has work, and the next step of a pass over it. A pass begins with this function
-- (tidemark.source_plan), and tidemark.poll calls it for each idle worker. It writes nothing and locks nothing. It
-- checks the conditions for a safe read; a later statement reads the rows.
--
-- A stable function has the snapshot of the statement that calls it. So the caller uses a separate statement, after the
-- one that locks the lease.
create or replace function tidemark.source_next(
    worker text,
    source text,
    shard integer,
    activity tidemark.activity default null,
    whole boolean default true,
    out plan tidemark.source_plan,
    out finding text,
    out due text,
    out sweeps boolean)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    w tidemark.worker;
    s tidemark.source;
    c tidemark.worker_cursor;
    open int8multirange;
    fit record;
    bound record;
    back interval;
    retry boolean;
    last_step text;
    clock constant timestamptz := clock_timestamp(); -- which an index can use as a condition
begin
    select x.* into w from tidemark.worker x where x.worker = source_next.worker;
    select x.* into s from tidemark.source x where x.source = source_next.source;
    select x.* into c from tidemark.worker_cursor x
    where x.worker = source_next.worker and x.source = source_next.source and x.shard = source_next.shard;
    plan.worker := w; plan.source := s; plan.cursor := c;
    plan.sweep := c.sweep;
    open := c.holes + c.fenced;

    plan.detail := tidemark.closed_gate(source_next.worker);
    if plan.detail is not null then
        plan.status := 'closed';
        return;
    end if;
    plan.detail := tidemark.source_throttle(w, c);
    if plan.detail is not null then
        plan.status := 'throttled';
        return;
    end if;
    if w.coalesce_window is not null and c.last_run_at > clock_timestamp() - w.coalesce_window
        and not coalesce((c.last_run_summary ->> 'more')::boolean, false) then
        plan.status := 'waiting';
        plan.detail := format('changes are gathered for %s', w.coalesce_window);
        return;
    end if;

    plan.status := 'held';
    if source_next.whole then
        fit := tidemark.source_problem(w, s, c);
        if fit.problem is not null then
            finding := fit.finding;
            plan.detail := fit.problem;
            return;
        end if;
        plan.relation := fit.relation;
        plan.call := fit.call;
    elsif s.safety = 'clock' then
        plan.relation := tidemark.source_fence(s);
    end if;
    -- If an operator edits the watermark by hand, the cursor skips rows or repeats them, and no record shows it.
    if c.decided_through is distinct from tidemark.source_place(c.watermark_ts, c.watermark_id) then
        finding := 'cursor_watermark_regression';
        plan.detail := format('the watermark is %s, and was left at %s: it was edited by hand, or restored. Accept a '
            'place with tidemark.source_rewind', tidemark.source_place(c.watermark_ts, c.watermark_id),
            c.decided_through);
        return;
    end if;

    if s.safety in ('sequence', 'capture') then
        plan.fence_closed := isempty(c.fenced) or tidemark.fence_closed(c.fence, tidemark.source_fence(s));
    else
        bound := tidemark.source_horizon(s, plan.relation, source_next.activity);
        if bound.hidden is not null then
            finding := 'source_unreadable';
            plan.detail := bound.hidden || ': as superuser, grant pg_read_all_stats to tidemark_owner, and leave '
                'track_activities on';
            return;
        elsif bound.held is not null then
            plan.status := 'waiting';
            plan.detail := 'kept by ' || bound.held;
            return;
        end if;
        -- A clock step of less than the margin is harmless: new rows are still behind the horizon.
        back := c.horizon - clock_timestamp();
        if back > coalesce(s.sweep_window, interval '0') and not c.metadata ? 'clock_back' then
            c.metadata := c.metadata || jsonb_build_object('clock_back', clock_timestamp());
            plan.cursor := c;
        end if;
        if c.metadata ? 'clock_back' then
            finding := 'source_clock_back';
            plan.detail := format('the clock of the server stepped back to %s, behind the horizon of an earlier pass: '
                'rows written since may lie behind the watermark. Rewind to that time with tidemark.source_rewind, or '
                'accept the place as it is', c.metadata ->> 'clock_back');
            return;
        elsif back > interval '0' then
            finding := 'source_clock_back';
            plan.detail := 'the clock of the server stepped back: the sweep will find what is written meanwhile';
            return;
        end if;
        plan.horizon := bound.horizon;
        plan.detail := bound.blame;
    end if;

    plan.status := 'go';
    retry := exists (
        select from tidemark.pending_row q
        where q.worker_id = w.id and q.source = s.source and q.shard = c.shard
          and q.next_attempt_at <= clock);
    sweeps := s.safety in ('clock', 'declared') and (c.sweep ? 'next_xmin'
        or coalesce((c.sweep ->> 'done_at')::timestamptz, '-infinity') < clock_timestamp() - s.sweep_every);
    -- As long as a sweep is due, they take turns: forward, retry, sweep.
    last_step := c.last_run_summary ->> 'step';
    plan.step := case
        when retry and last_step is distinct from 'retry' and not (sweeps and last_step = 'sweep') then 'retry'
        when sweeps and c.phase <> 'seeding' and last_step in ('forward', 'retry') then 'sweep'
        else 'forward' end;
    due := case
        when retry then 'retry'
        when not isempty(open) and plan.fence_closed then 'holes'
        when c.phase = 'seeding' then 'phase'
        when c.phase = 'reconciling' and (plan.fence_closed is null or isempty(open)) then 'phase'
        -- The pass must read the window, or end a sweep that is under way.
        when sweeps and (s.sweep_window is not null or c.sweep ? 'next_xmin') then 'sweep' end;
end
$$;
comment on function tidemark.source_next(text, text, integer, tidemark.activity, boolean) is
    'The next step of a pass over a source: plan, with status go, closed, throttled, waiting or held (finding is then '
    'the kind of the finding that says so). due: a reason for a pass that does not depend on new rows: retry, holes, '
    'phase, sweep; null: the pass has work if tidemark.source_peek finds some. sweeps: a sweep is due. activity: an '
    'earlier result of tidemark.oldest_transaction (null: it is asked now). whole false skips the check that the table '
    'and the handler still fit the worker, which takes longer than the rest. Use such a plan only for a peek, never to '
    'read.';
grant execute on function tidemark.source_next(text, text, integer, tidemark.activity, boolean) to tidemark_executor;
