create or replace function tidemark.settle(
    worker text,
    epoch bigint,
    batch tidemark.batch,
    evidence tidemark.evidence[],
    results tidemark.result[],
    fallbacks integer default 0,
    settle_no bigint default null,
    shard integer default 0)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    paged constant boolean := not (batch is null);
    summary jsonb;
    refusal text;
    me record;
    fresh tidemark.result[] := '{}';
    retried tidemark.result[] := '{}';
    ranges tidemark.evidence[];
    others tidemark.evidence[] := '{}';
    kept integer[];
    gone integer[];
    dead bigint := 0;
    n bigint;
begin
    perform tidemark.lease_check(settle.worker, settle.epoch, 'outbox', settle.shard);
    -- In a statement after the lock, so that it sees what the settle before left. alone: routes with events that wait,
    -- or have their own story.
    select w.id, c.settles, c.watermark_id::bigint as watermark, tidemark.cursor_edited(c) as edited,
           c.last_run_summary ? 'blocked_by' as was_blocked,
           array(
               select e.route_id from unnest(evidence) e where e.outcome in ('pending', 'failed')
               union all
               select r.route_id from unnest(results) r
               where r.fresh and (r.outcome in ('pending', 'failed') or r.detail is not null)) as alone
    into me
    from tidemark.worker w
    join tidemark.worker_cursor c on c.worker = w.worker and c.source = 'outbox' and c.shard = settle.shard
    where w.worker = settle.worker;
    if settle_no <> me.settles + 1 or batch.watermark < me.watermark or me.edited and paged then
        refusal := tidemark.settle_refusal(settle.worker, batch.watermark, settle_no, settle.shard);
        if refusal is not null then
            return jsonb_build_object('status', refusal);
        end if;
    end if;
    if cardinality(me.alone) > 0 then
        -- A route may have been deleted since the page was read. It is owed nothing any more; without this, what
        -- the other routes have been sent would be sent again. The lock keeps the others from being deleted.
        kept := array(select o.id from tidemark.outbound_route o where o.id = any (me.alone) for key share);
        gone := array(select o from unnest(me.alone) o where o <> all (kept));
        if cardinality(gone) > 0 then
            evidence := array(
                select case when e.outcome in ('pending', 'failed') and e.route_id = any (gone)
                           then row(e.route_id, 'skipped', 'route_deleted', null, e.events, e.seqs)::tidemark.evidence
                           else e end
                from unnest(settle.evidence) e);
            results := array(
                select case when r.fresh and r.outcome in ('pending', 'failed') and r.route_id = any (gone)
                           then row(r.route_id, true, 'skipped', 'route_deleted', null, r.seqs, 0)::tidemark.result
                           else r end
                from unnest(settle.results) r);
        end if;
    end if;
    ranges := evidence;
    if cardinality(results) > 0 then
        fresh := array(select r from unnest(results) r where r.fresh);
        ranges := ranges || array(
            select row(r.route_id, r.outcome, r.reason, r.detail,
                       (select sum(upper(s) - lower(s)) from unnest(r.seqs) s), r.seqs)::tidemark.evidence
            from unnest(fresh) r);
        delete from tidemark.handled h using unnest(fresh) r
        where h.route_id = r.route_id and h.seq >= lower(r.seqs) and h.seq < upper(r.seqs) and h.seq <@ r.seqs
          and r.outcome = 'sent';
    end if;

    if cardinality(me.alone) > 0 then
        dead := tidemark.settle_fresh(settle.worker, me.id, evidence, fresh, settle.shard);
    end if;
    if cardinality(fresh) < cardinality(results) then
        retried := array(select r from unnest(results) r where not r.fresh);
        select s.dead, s.recorded into n, others from tidemark.settle_retried(settle.worker, me.id, retried) s;
        dead := dead + n;
    end if;
    perform tidemark.history_add(ranges || others);
    if dead > 0 then
        perform tidemark.dead_letter_findings(settle.worker, me.id, settle.worker, dead);
        perform tidemark.finding_open('event_unreadable', settle.worker, 'warning',
            format('event %s for route %s: %s', lower(r.seqs), o.route_code, r.detail))
        from unnest(results) r join tidemark.outbound_route o on o.id = r.route_id
        where r.outcome = 'failed' and r.reason = 'unreadable';
    end if;
    if batch.blocked_by is not null then
        perform tidemark.finding_open('cursor_holes', tidemark.cursor_name(settle.worker, settle.shard), 'high',
            format('the cursor waits: too many numbers below it are kept open by %s', batch.blocked_by));
    elsif paged and me.was_blocked then
        perform tidemark.finding_close('cursor_holes', tidemark.cursor_name(settle.worker, settle.shard));
    end if;

    -- What many came to alike is a range; what has its own story is a row.
    with range as materialized (
        select e.* from unnest(ranges) e
    ), recorded as (
        insert into tidemark.decision (worker_id, route_id, last_seq, first_seq, events, outcome, reason, seqs)
        select me.id, d.route_id, upper(d.seqs) - 1, lower(d.seqs), d.events, d.outcome, d.reason, d.seqs
        from range d where d.outcome <> 'failed' and d.detail is null
    ), total as (
        select jsonb_object_agg(d.outcome, d.n) as decided, sum(d.n) as events
        from (select r.outcome, sum(r.events) as n from range r group by r.outcome) d
    )
    update tidemark.worker_cursor c
    set watermark_id = case when paged then batch.watermark::text else c.watermark_id end,
        decided_through = greatest(c.decided_through::bigint, batch.watermark)::text,
        rewound_to = case when not paged then c.rewound_to
                          when batch.watermark < c.decided_through::bigint then batch.watermark end,
        holes = coalesce(batch.holes, c.holes), fenced = coalesce(batch.fenced, c.fenced),
        fence = coalesce(batch.fence, c.fence),
        last_run_at = case when paged then clock_timestamp() else c.last_run_at end,
        last_run_summary = case when paged then jsonb_build_object(
                'worker', c.worker, 'status', 'ran', 'events', batch.events, 'late', batch.late,
                'decided', coalesce(t.decided, '{}'), 'watermark', batch.watermark, 'fallbacks', fallbacks)
                || case when batch.blocked_by is null then '{}'
                        else jsonb_build_object('blocked_by', batch.blocked_by) end
            else c.last_run_summary end,
        events_seen = c.events_seen + coalesce(batch.events, 0),
        attempts_written = c.attempts_written + coalesce(t.events, 0) + coalesce((
            select sum(e.events) from unnest(others) e where paged), 0),
        dead_lettered = c.dead_lettered + dead,
        settles = coalesce(settle_no, c.settles),
        updated_at = case when paged then clock_timestamp() else c.updated_at end
    from total t
    where c.worker = settle.worker and c.source = 'outbox' and c.shard = settle.shard
    returning c.last_run_summary into summary;
    return case when paged then summary end;
end
$$;
comment on function tidemark.settle(text, bigint, tidemark.batch, tidemark.evidence[], tidemark.result[], integer,
                                    bigint, integer) is
    'Records the outcome of a batch (evidence, results of deliveries, pending, dead letters) and moves the cursor, in '
    'one transaction. batch null: only for events that were pending. settle_no is kept as worker_cursor.settles. '
    'Returns the summary of the pass, as route_worker_run returns it and worker_cursor.last_run_summary keeps it; null '
    'without a batch. Where tidemark.settle_refusal refuses it, nothing is recorded, and status tells why. Raises '
    'TM011 where the cursor has another epoch by now.';
grant execute on function tidemark.settle(text, bigint, tidemark.batch, tidemark.evidence[], tidemark.result[],
                                          integer, bigint, integer) to tidemark_executor;
