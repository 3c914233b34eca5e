create or replace function tidemark.settle_missing(worker text, shard integer default 0)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    at constant timestamptz := clock_timestamp();
    worker_ constant integer := (select w.id from tidemark.worker w where w.worker = settle_missing.worker);
    gone tidemark.pending[];
    routes integer[];
    keys text[];
    dead bigint;
begin
    -- Lock the lease's row: it makes settling serial (tidemark.release_keys).
    perform from tidemark.heartbeat h
    where h.executor_id = tidemark.executor_id(settle_missing.worker, 'outbox', settle_missing.shard) for update;

    with left_ as (
        delete from tidemark.pending p
        where p.ctid = any (array(
            select q.ctid from tidemark.pending q join tidemark.outbound_route r on r.id = q.route_id
            left join tidemark.dead_letter l on l.id = q.dead_letter_id
            where q.worker_id = worker_ and q.shard = settle_missing.shard
              -- A replay has its letter's snapshot, unless the snapshot lacks the payload; a target inside the database
              -- needs the log.
              and (q.dead_letter_id is null or l.payload_in_log or tidemark.target_is_inside(r.target_kind))
              and not exists (select from tidemark.outbox o
                              where o.seq = q.seq and o.event_id = coalesce(l.event_id, o.event_id))
            limit 10000))
        returning p as row_)
    select array_agg(l.row_ order by (l.row_).seq, (l.row_).route_id) into gone from left_ l;
    if gone is null then
        return 0;
    end if;

    insert into tidemark.attempt (seq, worker_id, route_id, attempt_no, outcome, reason, detail)
    select g.seq, worker_, g.route_id, g.attempt_no + 1, 'failed', 'event_missing',
           'the event is no longer in the log'
    from unnest(gone) g;

    perform tidemark.replay_count(array(select g.replay_id from unnest(gone) g), 'failed', 'event_missing');

    perform tidemark.settle_replay(g.dead_letter_id, g.attempt_no + 1, 'failed', 'event_missing',
                                   'the event is no longer in the log')
    from unnest(gone) g where g.dead_letter_id is not null;

    perform tidemark.history_add(array(
        select row(g.route_id, 'failed', 'event_missing', null, count(*),
                   range_agg(int8range(g.seq, g.seq + 1)))::tidemark.evidence
        from unnest(gone) g group by g.route_id));

    insert into tidemark.dead_letter as l (idempotency_key, worker_id, route_id, seq, event_snapshot, error_code,
                                           error_detail, attempts, first_failed_at, last_failed_at)
    select format('tm:%s:%s:seq-%s', settle_missing.worker, r.route_code, g.seq), worker_, g.route_id, g.seq,
           jsonb_build_object('seq', g.seq, 'route', r.route_code, 'key', g.key, 'pending_since', g.created_at,
                              'attempts', g.attempt_no, 'last_error', g.last_error),
           'event_missing', 'the event is no longer in the log', g.attempt_no + 1, at, at
    from unnest(gone) g join tidemark.outbound_route r on r.id = g.route_id
    where g.dead_letter_id is null
    -- Numbers are used again after a failover or a restore.
    on conflict (idempotency_key) do update
    set event_snapshot = excluded.event_snapshot, attempts = l.attempts + 1, last_failed_at = at,
        resolved_at = null, resolution = null, resolved_by = null, resolution_reason = null,
        logged = false;
    get diagnostics dead = row_count;

    select array_agg(k.route_id), array_agg(k.key) into routes, keys
    from (select distinct g.route_id, g.key from unnest(gone) g where g.key is not null) k;
    if routes is not null then
        perform tidemark.release_keys(worker_, routes, keys);
    end if;
    if dead > 0 then
        perform tidemark.dead_letter_findings(settle_missing.worker, worker_, settle_missing.worker, dead);
        update tidemark.worker_cursor c set dead_lettered = dead_lettered + dead
        where c.worker = settle_missing.worker and c.source = 'outbox' and c.shard = settle_missing.shard;
    end if;
    return cardinality(gone);
end
$$;
comment on function tidemark.settle_missing(text, integer) is
    'Dead-letters, as event_missing, pending events of the worker''s routes that are gone from the log because a '
    'partition was dropped by hand, at most 10,000 a call. Events that waited behind them go on. Returns how many it '
    'dead-lettered.';
grant execute on function tidemark.settle_missing(text, integer) to tidemark_executor;
