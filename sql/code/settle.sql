create or replace function tidemark.settle(
    worker text,
    epoch bigint,
    batch tidemark.batch,
    evidence tidemark.evidence[],
    summary jsonb)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    worker_id constant integer := (select w.id from tidemark.worker w where w.worker = settle.worker);
    written constant bigint := coalesce((select sum(e.events) from unnest(evidence) e), 0);
    at constant timestamptz := clock_timestamp();
    dead bigint := 0;
begin
    -- The fence against an owner that was paused or replaced: compare, and keep the row locked to the end of
    -- this transaction, so that nobody can take over between this check and the commit.
    perform from tidemark.heartbeat h
    where h.executor_id = settle.worker || '/outbox/0' and h.lease_epoch = settle.epoch
    for update;
    if not found then
        raise exception using errcode = 'TM011',
            message = format('worker %s: epoch %s is over, another instance has taken the cursor', settle.worker, epoch),
            hint = 'Nothing was written. The other instance has these events.';
    end if;

    insert into tidemark.decision (worker_id, route_id, last_seq, first_seq, events, outcome, reason, seqs)
    select worker_id, e.route_id, upper(e.seqs) - 1, lower(e.seqs), e.events, e.outcome, e.reason, e.seqs
    from unnest(evidence) e
    where e.outcome in ('skipped', 'disabled', 'dry_run');

    if exists (select from unnest(evidence) e where e.outcome in ('pending', 'sent', 'failed')) then
        insert into tidemark.attempt (seq, worker_id, route_id, attempt_no, outcome, reason, detail)
        select n, worker_id, e.route_id, 1, e.outcome, e.reason, e.detail
        from unnest(evidence) e, unnest(e.seqs) r, generate_series(lower(r), upper(r) - 1) n
        where e.outcome in ('pending', 'sent', 'failed');

        insert into tidemark.pending (worker_id, route_id, seq, key)
        select worker_id, e.route_id, o.seq, o.key
        from unnest(evidence) e cross join lateral tidemark.events(tidemark.multirange_numbers(e.seqs)) o
        where e.outcome = 'pending';

        insert into tidemark.dead_letter (idempotency_key, worker_id, route_id, seq, event_id, event_snapshot,
                                          error_code, error_detail, first_failed_at, last_failed_at)
        select tidemark.attempt_key(settle.worker, r.route_code, o.event_id), worker_id, e.route_id, o.seq, o.event_id,
               tidemark.event_json(o), e.reason, e.detail, at, at
        from unnest(evidence) e
        join tidemark.outbound_route r on r.id = e.route_id
        cross join lateral tidemark.events(tidemark.multirange_numbers(e.seqs)) o
        where e.outcome = 'failed';
        get diagnostics dead = row_count;
    end if;

    if batch.blocked_by is not null then
        perform tidemark.finding_open('cursor_holes', settle.worker, 'high',
            format('the cursor waits: too many numbers below it are open, kept so by %s', batch.blocked_by));
    elsif batch.events > 0 then
        perform tidemark.finding_close('cursor_holes', settle.worker);
    end if;

    update tidemark.worker_cursor c
    set watermark_id = batch.watermark::text,
        decided_through = greatest(decided_through::bigint, batch.watermark)::text,
        holes = batch.holes, fenced = batch.fenced, fence = batch.fence,
        last_run_at = clock_timestamp(), last_run_summary = summary,
        events_seen = events_seen + batch.events,
        attempts_written = attempts_written + written,
        dead_lettered = dead_lettered + dead,
        updated_at = clock_timestamp()
    where c.worker = settle.worker and c.source = 'outbox' and c.shard = 0;
end
$$;
comment on function tidemark.settle(text, bigint, tidemark.batch, tidemark.evidence[], jsonb) is
'Writes what became of a batch (evidence, pending, dead letters) and moves the cursor, in one transaction. Raises TM011 where the epoch is not the cursor''s any more.';
revoke all on function tidemark.settle(text, bigint, tidemark.batch, tidemark.evidence[], jsonb) from public;
grant execute on function tidemark.settle(text, bigint, tidemark.batch, tidemark.evidence[], jsonb) to tidemark_executor;
