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
    return query
    with newest as materialized (
        select d.outcome, d.first_seq, d.last_seq, d.events, d.decided_at from tidemark.decision d
        where d.worker_id = w and d.route_id = route.id
        order by d.last_seq desc limit most
    ), delivered as materialized (
        select coalesce(max(n.last_seq), 0) as seq, coalesce(max(n.decided_at), '-infinity') as at
        from newest n where n.outcome in ('sent', 'pending')
    ), batch as materialized (
        select n.outcome, n.first_seq, n.last_seq, a.again, n.events - case
                   when a.again && int8range(n.first_seq, n.last_seq + 1) then (
                       select cardinality(tidemark.multirange_numbers(a.again * d.seqs)) from tidemark.decision d
                       where d.worker_id = w and d.route_id = route.id and d.last_seq = n.last_seq)
                   else 0 end as n
        from newest n cross join delivered v
        cross join lateral (select (again ->> n.outcome::text)::int8multirange as again) a
        where n.outcome in ('disabled', 'dry_run')
          -- A shard that is behind the others records lower numbers than they have delivered before.
          and (n.last_seq > v.seq or n.decided_at > v.at)
    ), attempts as materialized (
        select a.seq, a.attempt_no, a.outcome, a.decided_at from tidemark.attempt a
        where a.worker_id = w and a.route_id = route.id
        order by a.seq desc, a.attempt_no desc limit most
    ), tried as materialized (
        select distinct on (a.seq) a.seq, a.outcome, a.decided_at from attempts a
        order by a.seq desc, a.attempt_no desc
    ), replayed as (
        select b.outcome, sum(cardinality(tidemark.multirange_numbers((
            -- They may be long: only those of batches with attempts in their span.
            select d.seqs from tidemark.decision d
            where d.worker_id = w and d.route_id = route.id and d.last_seq = b.last_seq) * t.seqs - b.again))) as n
        from (select min(a.seq) as low, max(a.seq) as high from attempts a) s
        join batch b on b.first_seq <= s.high and b.last_seq >= s.low
        cross join lateral (
            select range_agg(int8range(a.seq, a.seq + 1)) as seqs from tidemark.attempt a
            where a.worker_id = w and a.route_id = route.id
              and a.seq >= greatest(b.first_seq, s.low) and a.seq <= b.last_seq) t
        where t.seqs is not null
        group by 1
    ), missed as (
        select b.outcome, b.n, b.first_seq as low, b.last_seq as high from batch b where b.n > 0
        union all
        -- In dry run a transform failed, or a dead letter was tried again.
        select t.outcome, 1, t.seq, t.seq from tried t cross join delivered v
        where t.outcome in ('disabled', 'dry_run') and (t.seq > v.seq or t.decided_at > v.at)
          and not (again ->> t.outcome::text)::int8multirange @> t.seq
    ), whole as materialized (
        select (select count(*) from newest) < most
            and (count(*) < most or min(a.seq) <= (select least(min(m.low), min(v.seq) + 1) from missed m, delivered v))
            as read
        from attempts a
    )
    select m.outcome, m.n - coalesce(r.n, 0), m.low, m.high, (select whole.read from whole)
    from (select m.outcome, sum(m.n)::bigint as n, min(m.low) as low, max(m.high) as high from missed m group by 1) m
    left join replayed r on r.outcome = m.outcome
    where m.n > coalesce(r.n, 0)
    order by 1;
end
$$;
comment on function tidemark.route_missed(text, integer) is
    'The events that were recorded while the route was off (outcome disabled) or in dry run (dry_run) and not replayed '
    'since: their number, and the span in which they lie. Only of the time since the route last delivered, on any '
    'shard of its worker; events whose transform failed in dry run are among them. Nothing '
    'sends them but tidemark.route_replay. Looks at the newest most batches of evidence and as many attempts (1 to '
    '1000000, default 10000); complete false: there may be earlier ones. Raises TM004, TM005.';
grant execute on function tidemark.route_missed(text, integer) to tidemark_reader, tidemark_executor;
