-- What a pass over a source begins with, under the lease: may it run, is the table still what it was, up to where are
-- its rows complete, and what is next. Everything that the reading rests on is looked at here, in statements before it.
create or replace function tidemark.source_plan(
    worker text, source text, shard integer, epoch bigint, page integer, lease interval)
returns tidemark.source_plan
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    p tidemark.source_plan;
    w tidemark.worker;
    s tidemark.source;
    c tidemark.worker_cursor;
    fit record;
    bound record;
    back interval;
begin
    perform tidemark.lease_check(source_plan.worker, source_plan.epoch, source_plan.source, source_plan.shard);
    if source_plan.lease is not null then
        update tidemark.heartbeat h set lease_until = clock_timestamp() + source_plan.lease
        where h.executor_id = tidemark.executor_id(source_plan.worker, source_plan.source, source_plan.shard);
    end if;
    select x.* into w from tidemark.worker x where x.worker = source_plan.worker;
    select x.* into s from tidemark.source x where x.source = source_plan.source;
    select x.* into c from tidemark.worker_cursor x
    where x.worker = source_plan.worker and x.source = source_plan.source and x.shard = source_plan.shard;
    p.worker := w; p.source := s; p.cursor := c;
    p.sweep := c.sweep;
    p.epoch := source_plan.epoch;
    p.rows_limit := least(coalesce(source_plan.page, w.page_size), 50000);

    p.detail := tidemark.closed_gate(source_plan.worker);
    if p.detail is not null then
        p.status := 'closed';
        return p;
    end if;
    p.detail := tidemark.source_throttle(w, c);
    if p.detail is not null then
        p.status := 'throttled';
        return p;
    end if;
    if w.coalesce_window is not null and c.last_run_at > clock_timestamp() - w.coalesce_window
        and not coalesce((c.last_run_summary ->> 'more')::boolean, false) then
        p.status := 'waiting';
        p.detail := format('changes are gathered for %s', w.coalesce_window);
        return p;
    end if;

    fit := tidemark.source_problem(w, s, c);
    if fit.problem is not null then
        return tidemark.source_hold(p, fit.finding, fit.problem);
    end if;
    p.relation := fit.relation;
    p.call := fit.call;
    -- An operator who edits a watermark by hand skips rows, or has them handled twice, and leaves no trace of it.
    if c.decided_through is distinct from tidemark.source_place(c.watermark_ts, c.watermark_id) then
        return tidemark.source_hold(p, 'cursor_watermark_regression',
            format('the watermark is %s, and was left at %s: it was edited by hand, or restored. Accept a place with '
                   'tidemark.source_rewind',
                   tidemark.source_place(c.watermark_ts, c.watermark_id), c.decided_through));
    end if;

    if s.safety in ('sequence', 'capture') then
        p.fence_closed := isempty(c.fenced) or tidemark.fence_closed(c.fence, tidemark.source_fence(s));
    else
        bound := tidemark.source_horizon(s, p.relation);
        if bound.hidden is not null then
            return tidemark.source_hold(p, 'source_unreadable', bound.hidden
                || ': as superuser, grant pg_read_all_stats to tidemark_owner, and leave track_activities on');
        elsif bound.held is not null then
            p.status := 'waiting';
            p.detail := 'kept by ' || bound.held;
            return p;
        end if;
        -- A step of less than the margin is harmless: what is written then is still behind the horizon.
        back := c.horizon - clock_timestamp();
        if back > coalesce(s.sweep_window, interval '0') and not c.metadata ? 'clock_back' then
            update tidemark.worker_cursor x
            set metadata = x.metadata || jsonb_build_object('clock_back', clock_timestamp())
            where x.worker = c.worker and x.source = c.source and x.shard = c.shard
            returning x.metadata into c.metadata;
        end if;
        if c.metadata ? 'clock_back' then
            return tidemark.source_hold(p, 'source_clock_back', format(
                'the clock of the server stepped back to %s, behind the horizon of an earlier pass: rows written since '
                'may lie behind the watermark. Rewind to that time with tidemark.source_rewind, or accept the place as '
                'it is', c.metadata ->> 'clock_back'));
        elsif back > interval '0' then
            return tidemark.source_hold(p, 'source_clock_back',
                                        'the clock of the server stepped back: the sweep will find what is written '
                                        'meanwhile');
        end if;
        p.horizon := bound.horizon;
        p.detail := bound.blame;
    end if;
    p.status := 'go';
    p.step := case
        when c.last_run_summary ->> 'step' is distinct from 'retry' and exists (
            select from tidemark.pending_row q
            where q.worker_id = w.id and q.source = s.source and q.shard = c.shard
              and q.next_attempt_at <= clock_timestamp())
            then 'retry'
        when s.safety in ('clock', 'declared') and c.phase <> 'seeding' and c.last_run_summary ->> 'step' = 'forward'
            and (c.sweep ? 'next_xmin'
                 or coalesce((c.sweep ->> 'done_at')::timestamptz, '-infinity') < clock_timestamp() - s.sweep_every)
            then 'sweep'
        else 'forward' end;
    p.suspects := (c.metadata -> 'suspects' -> p.step ->> 'left')::integer;
    p.rows_limit := least(p.rows_limit, (c.metadata -> 'suspects' -> p.step ->> 'rows')::integer);
    if p.step = 'sweep' and not p.sweep ? 'next_xmin' then
        -- Taken before its first read: rows of transactions below it are visible to every read of this sweep.
        p.sweep := p.sweep || jsonb_build_object('next_xmin', pg_snapshot_xmin(pg_current_snapshot())::text,
                                                 'next_mark', c.watermark_ts, 'segment', 'null');
    end if;
    return p;
end
$$;
comment on function tidemark.source_plan(text, text, integer, bigint, integer, interval) is
    'What the owner of the lease epoch is to do next with a source, at most page rows of it (null: the worker''s '
    'page_size). Renews the lease, where one is given. Where the worker must not go on it opens a finding. Raises '
    'TM011.';
grant execute on function tidemark.source_plan(text, text, integer, bigint, integer, interval) to tidemark_executor;
