create or replace function tidemark.settle(
    worker text,
    epoch bigint,
    batch tidemark.batch,
    evidence tidemark.evidence[],
    results tidemark.result[],
    summary jsonb,
    settle_no bigint default null,
    shard integer default 0)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    worker_id constant integer := (select w.id from tidemark.worker w where w.worker = settle.worker);
    fresh tidemark.result[] := '{}';
    ranges tidemark.evidence[];
    retried tidemark.result[] := '{}';
    owing constant integer[] := array(
        select e.route_id from unnest(evidence) e where e.outcome in ('pending', 'failed')
        union
        select r.route_id from unnest(results) r where r.fresh and r.outcome in ('pending', 'failed'));
    kept integer[];
    gone integer[];
    written bigint;
    waits boolean;
    was_blocked boolean;
    dead bigint := 0;
    n bigint;
begin
    perform tidemark.lease_check(settle.worker, settle.epoch, 'outbox', settle.shard);
    if cardinality(owing) > 0 then
        -- A route may have been deleted since the page was read. It is owed nothing any more; without this, what
        -- the other routes have been sent would be sent again. The lock keeps the others from being deleted.
        kept := array(select o.id from tidemark.outbound_route o where o.id = any (owing) for key share);
        gone := array(select o from unnest(owing) o where o <> all (kept));
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
        retried := array(select r from unnest(results) r where not r.fresh);
        ranges := ranges || array(
            select row(r.route_id, r.outcome, r.reason, r.detail,
                       (select sum(upper(s) - lower(s)) from unnest(r.seqs) s), r.seqs)::tidemark.evidence
            from unnest(fresh) r);
        delete from tidemark.handled h using unnest(results) r
        where h.route_id = r.route_id and h.seq <@ r.seqs and r.outcome = 'sent';
    end if;

    -- What many came to alike is a range; what has its own story is a row.
    insert into tidemark.decision (worker_id, route_id, last_seq, first_seq, events, outcome, reason, seqs)
    select worker_id, d.route_id, upper(d.seqs) - 1, lower(d.seqs), d.events, d.outcome, d.reason, d.seqs
    from unnest(ranges) d where d.outcome <> 'failed' and d.detail is null;

    select coalesce(sum(e.events), 0),
           coalesce(bool_or(e.outcome in ('pending', 'failed') or e.detail is not null), false),
           (select c.last_run_summary ? 'blocked_by' from tidemark.worker_cursor c
            where c.worker = settle.worker and c.source = 'outbox' and c.shard = settle.shard)
    into written, waits, was_blocked
    from unnest(ranges) e;

    if waits then
        n := tidemark.settle_fresh(settle.worker, worker_id, evidence, fresh, settle.shard);
        dead := dead + n;
    end if;
    if cardinality(retried) > 0 then
        written := written + (select sum(upper(s) - lower(s)) from unnest(retried) r, unnest(r.seqs) s);
        n := tidemark.settle_retried(settle.worker, worker_id, retried);
        dead := dead + n;
    end if;
    perform tidemark.history_add(ranges, retried);
    if dead > 0 then
        perform tidemark.dead_letter_findings(settle.worker, worker_id, settle.worker, dead);
        perform tidemark.finding_open('event_unreadable', settle.worker, 'warning',
            format('event %s for route %s: %s', lower(r.seqs), o.route_code, r.detail))
        from unnest(results) r join tidemark.outbound_route o on o.id = r.route_id
        where r.outcome = 'failed' and r.reason = 'unreadable';
    end if;
    if batch is null then
        update tidemark.worker_cursor c set settles = coalesce(settle_no, c.settles),
                                            dead_lettered = dead_lettered + dead
        where c.worker = settle.worker and c.source = 'outbox' and c.shard = settle.shard;
        return;
    end if;

    if batch.blocked_by is not null then
        perform tidemark.finding_open('cursor_holes', tidemark.cursor_name(settle.worker, settle.shard), 'high',
            format('the cursor waits: too many numbers below it are kept open by %s', batch.blocked_by));
    elsif was_blocked then
        perform tidemark.finding_close('cursor_holes', tidemark.cursor_name(settle.worker, settle.shard));
    end if;

    update tidemark.worker_cursor c
    set watermark_id = batch.watermark::text,
        decided_through = greatest(decided_through::bigint, batch.watermark)::text,
        holes = batch.holes, fenced = batch.fenced, fence = batch.fence,
        last_run_at = clock_timestamp(), last_run_summary = summary,
        events_seen = events_seen + batch.events,
        attempts_written = attempts_written + written,
        dead_lettered = dead_lettered + dead,
        settles = coalesce(settle_no, c.settles),
        updated_at = clock_timestamp()
    where c.worker = settle.worker and c.source = 'outbox' and c.shard = settle.shard;
end
$$;
comment on function tidemark.settle(text, bigint, tidemark.batch, tidemark.evidence[], tidemark.result[], jsonb,
                                    bigint, integer) is
    'Records the outcome of a batch (evidence, results of deliveries, pending, dead letters) and moves the cursor, in '
    'one transaction. batch null: only for events that were pending. settle_no is kept as worker_cursor.settles. '
    'Raises TM011 where the cursor has another epoch by now.';
grant execute on function tidemark.settle(text, bigint, tidemark.batch, tidemark.evidence[], tidemark.result[], jsonb,
                                          bigint, integer) to tidemark_executor;
