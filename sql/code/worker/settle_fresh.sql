create or replace function tidemark.settle_fresh(
    worker text,
    worker_id integer,
    evidence tidemark.evidence[],
    fresh tidemark.result[],
    shard integer)
returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    at constant timestamptz := clock_timestamp();
    outcomes constant tidemark.result[] := fresh || array(
        select row(e.route_id, true, e.outcome, e.reason, e.detail, e.seqs, 0)::tidemark.result
        from unnest(evidence) e where e.outcome in ('pending', 'failed'));
    routes integer[];
    keys text[];
    dead bigint;
    ordered constant integer[] := array(
        select r.id from tidemark.outbound_route r
        where r.worker = settle_fresh.worker and r.ordering = 'key' and not tidemark.target_is_inside(r.target_kind));
begin
    insert into tidemark.attempt (seq, worker_id, route_id, attempt_no, outcome, reason, detail)
    select n, worker_id, r.route_id, 1, r.outcome, r.reason, r.detail
    from unnest(outcomes) r, unnest(r.seqs) s, generate_series(lower(s), upper(s) - 1) n
    where r.outcome = 'failed' or r.detail is not null;

    with staged as (
        insert into tidemark.pending (worker_id, route_id, seq, shard, domain, key, held, next_attempt_at, error_count,
                                      last_error, suspects)
        select worker_id, r.route_id, o.seq, settle_fresh.shard, o.domain, o.key,
               r.reason is not distinct from 'domain_closed',
               -- Where order is kept, an untried event waits until it is the first of its key. If it were due,
               -- tidemark.pending_due would have to skip it each time.
               case when r.delay is null or r.reason = 'domain_closed'
                        or r.delay = 0 and o.key is not null and r.route_id = any (ordered) then 'infinity'
                    else at + make_interval(secs => r.delay) end,
               (r.detail is not null)::integer, coalesce(r.reason || ': ' || r.detail, r.reason),
               case when r.reason = 'suspect' and r.detail is null
                         then (select sum(upper(s) - lower(s)) from unnest(r.seqs) s) end
        from unnest(outcomes) r cross join lateral unnest(r.seqs) s
        cross join lateral (
            select o.seq, o.domain, o.key from tidemark.outbox o
            where o.seq >= lower(s) and o.seq < upper(s) order by o.seq) o
        where r.outcome = 'pending'
        returning route_id, key, next_attempt_at, held)
    select array_agg(s.route_id), array_agg(s.key) into routes, keys
    from (select distinct route_id, key from staged where next_attempt_at = 'infinity' and not held) s;
    if routes is not null then
        perform tidemark.release_keys(worker_id, routes, keys);
    end if;

    insert into tidemark.dead_letter (idempotency_key, worker_id, route_id, seq, event_id, event_snapshot,
                                      payload_in_log, error_code, error_detail, first_failed_at, last_failed_at)
    select tidemark.attempt_key(settle_fresh.worker, r.route_code, e.event_id), worker_id, f.route_id, e.seq,
           e.event_id, e.snapshot, f.reason = 'unreadable', f.reason, f.detail, at, at
    from unnest(outcomes) f
    join tidemark.outbound_route r on r.id = f.route_id
    cross join lateral tidemark.event_snapshots(f.seqs, f.reason is distinct from 'unreadable') e
    where f.outcome = 'failed';
    get diagnostics dead = row_count;
    return dead;
end
$$;
comment on function tidemark.settle_fresh(text, integer, tidemark.evidence[], tidemark.result[], integer) is
    'The part of tidemark.settle for events that wait, or whose first attempt failed. Returns how many it '
    'dead-lettered.';
