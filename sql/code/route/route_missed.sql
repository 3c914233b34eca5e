-- public
create or replace function tidemark.route_missed(route_code text, most integer default 10000)
returns table (outcome tidemark.outcome, events bigint, first_seq bigint, last_seq bigint, complete boolean)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    route constant tidemark.outbound_route := (
        select r from tidemark.outbound_route r where r.route_code = route_missed.route_code);
    w constant integer := (select w.id from tidemark.worker w where w.worker = (route).worker);
    low bigint;
    high bigint;
    seen bigint; -- batches of evidence
    again constant jsonb := (  -- what replays under way send, by outcome
        select jsonb_object_agg(o, coalesce((
            select range_agg(int8range(j.passed_seq + 1, j.last_seq + 1))::text from tidemark.replay_job j
            where j.route_id = route.id and j.finished_at is null and j.key is null and j.passed_seq < j.last_seq
              and (j.outcomes is null or o = any (j.outcomes))), '{}'))
        from unnest(array['disabled', 'dry_run']) o);
begin
    if route is null then
        raise exception using errcode = 'TM004', message = format('there is no route "%s"', route_missed.route_code),
            hint = 'Routes: select route_code from tidemark.outbound_route;';
    elsif most is null or most not between 1 and 1000000 then
        raise exception using errcode = 'TM005',
            message = format('most is %s, and must be from 1 to 1000000', coalesce(most::text, 'null'));
    end if;
    -- The newest evidence back to the last batch that was decided for delivery.
    select count(*), coalesce(max(n.last_seq) filter (where n.outcome in ('sent', 'pending', 'failed')), 0) + 1,
           max(n.last_seq)
    into seen, low, high from (
        select d.outcome, d.last_seq from tidemark.decision d
        where d.worker_id = w and d.route_id = route.id
        order by d.last_seq desc limit most) n;
    return query
    with batch as materialized (
        select d.outcome, d.first_seq, d.last_seq, d.events - case
                   when a.again && int8range(d.first_seq, d.last_seq + 1)
                   then cardinality(tidemark.multirange_numbers(a.again * d.seqs)) else 0 end as n
        from tidemark.decision d
        cross join lateral (select (again ->> d.outcome::text)::int8multirange as again) a
        where d.worker_id = w and d.route_id = route.id and d.last_seq between low and high
          and d.outcome in ('disabled', 'dry_run')
        order by d.last_seq desc limit most
    ), tried as materialized (
        select a.seq from tidemark.attempt a
        where a.worker_id = w and a.route_id = route.id and a.seq between low and high
        order by a.seq desc limit most
    ), replayed as (
        select d.outcome, count(distinct t.seq) as n
        from tried t
        -- Its batch is one of the next few, if it has one: what only has attempts must not read all that follows.
        cross join lateral (
            select n.outcome from (
                select d.outcome, d.first_seq, d.last_seq, d.seqs from tidemark.decision d
                where d.worker_id = w and d.route_id = route.id and d.last_seq >= t.seq
                order by d.last_seq limit 8) n
            where n.first_seq <= t.seq and n.seqs @> t.seq
            order by n.last_seq limit 1) d
        where d.outcome in ('disabled', 'dry_run') and not (again ->> d.outcome::text)::int8multirange @> t.seq
        group by 1
    )
    select b.outcome, b.n - coalesce(r.n, 0), b.low, b.high, seen < most and (select count(*) from tried) < most
    from (select b.outcome, sum(b.n)::bigint as n, min(b.first_seq) as low, max(b.last_seq) as high
          from batch b where b.n > 0 group by 1) b
    left join replayed r on r.outcome = b.outcome
    where b.n > coalesce(r.n, 0)
    order by 1;
end
$$;
comment on function tidemark.route_missed(text, integer) is
    'The events that were recorded while the route was off (outcome disabled) or in dry run (dry_run) and not replayed '
    'since: their number, and the span in which they lie. Only of the time since the route last delivered. Nothing '
    'sends them but tidemark.route_replay. Looks at the newest most batches of evidence and as many attempts (1 to '
    '1000000, default 10000); complete false: there may be earlier ones. Raises TM004, TM005.';
grant execute on function tidemark.route_missed(text, integer) to tidemark_reader, tidemark_executor;
