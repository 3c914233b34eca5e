create or replace function tidemark.route_latency(route_code text, most integer)
returns table (events bigint, p50_seconds double precision, p99_seconds double precision)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    -- A sample, by the primary keys alone: most batches and most attempts of the last hour, and ten events of each
    -- range.
    since constant timestamptz := clock_timestamp() - interval '1 hour';
    of_worker integer;
    of_route integer;
begin
    select w.id, r.id into of_worker, of_route
    from tidemark.outbound_route r join tidemark.worker w on w.worker = r.worker
    where r.route_code = route_latency.route_code;
    return query
    with sent (seq, at) as (
        select n, d.decided_at
        from (select x.seqs, x.decided_at, x.outcome from tidemark.decision x
              where x.worker_id = of_worker and x.route_id = of_route
              order by x.last_seq desc limit least(route_latency.most, 200)) d
        cross join lateral unnest(d.seqs) s
        cross join lateral generate_series(
            lower(s), upper(s) - 1, greatest((upper(s) - lower(s)) / 10, 1)) n
        where d.outcome = 'sent' and d.decided_at >= since
        union all
        select a.seq, a.decided_at
        from (select x.seq, x.decided_at, x.outcome from tidemark.attempt x
              where x.worker_id = of_worker and x.route_id = of_route
              order by x.seq desc limit least(route_latency.most, 200)) a
        where a.outcome = 'sent' and a.decided_at >= since
    ), took as (
        select extract(epoch from t.at - o.created_at)::double precision as seconds
        from (select s.seq, min(s.at) as at from sent s group by s.seq limit 5000) t
        cross join lateral (select e.created_at from tidemark.outbox e where e.seq = t.seq limit 1) o
        -- An event from before was replayed.
        where o.created_at >= since
    )
    select count(*), percentile_cont(0.5) within group (order by t.seconds),
           percentile_cont(0.99) within group (order by t.seconds)
    from took t having count(*) > 0;
end
$$;
comment on function tidemark.route_latency(text, integer) is
    'How long events of the last hour took from their emit until the route had sent them, retries included: the median '
    'and the 99th percentile of a sample: its newest batches and attempts, most of each (up to 200). No row: none was '
    'sent.';
grant execute on function tidemark.route_latency(text, integer) to tidemark_reader, tidemark_executor;
