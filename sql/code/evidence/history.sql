-- public
create or replace function tidemark.history(
    route_code text default null,
    since interval default '1 hour',
    step interval default '1 minute')
returns table (
    at timestamptz,
    emitted numeric,
    sent bigint,
    retried bigint,
    failed bigint,
    recorded bigint,
    waiting bigint)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set timezone = 'UTC' -- else a day is not always 24 hours, as date_bin has it
set jit = off
as $$
#variable_conflict use_column
declare
    most constant integer := 1500;
    route constant integer := (
        select r.id from tidemark.outbound_route r where r.route_code = history.route_code);
    upto constant timestamptz := clock_timestamp();
    -- Up to here maintain has added up all routes.
    added constant timestamptz := (
        select m.at from tidemark.route_minute m where m.route_id = 0 order by m.at desc limit 1);
    first timestamptz;
begin
    if history.route_code is not null and route is null then
        raise exception using errcode = 'TM004', message = format('there is no route "%s"', history.route_code),
            hint = 'Routes: select route_code from tidemark.outbound_route;';
    elsif step is null or step < interval '1 minute' or since is null or since < step
        or since > interval '7 days' then
        raise exception using errcode = 'TM005',
            message = format('since %s with step %s: the history is by the minute, and of 7 days', since, step),
            hint = 'A step is a minute or more, and not longer than since.';
    elsif extract(epoch from since) / extract(epoch from step) > most then
        raise exception using errcode = 'TM005',
            message = format('since %s by %s is more than %s steps', since, step, most),
            hint = 'Ask for a longer step.';
    end if;
    first := date_bin(step, upto - since, 'epoch') + step;
    return query
    with noted as (
        select m.at, (m.last_seq - lag(m.last_seq) over o) / extract(epoch from m.at - lag(m.at) over o) as rate
        from tidemark.log_minute m where m.at >= first - interval '1 hour'
        window o as (order by m.at)
    ), inflow as (
        select date_bin(step, n.at, 'epoch') as at, avg(n.rate) as rate, true as noted from noted n
        where n.at >= first group by 1
    ), minutes as (
        -- All routes of a minute first: the most that waited is that of a moment.
        select m.at, m.sent, m.retried, m.failed, m.recorded, m.waiting
        from tidemark.route_minute m where m.route_id = coalesce(route, 0) and m.at >= first
        union all
        select m.at, sum(m.sent), sum(m.retried), sum(m.failed), sum(m.recorded), sum(m.waiting)
        from tidemark.route_minute m
        where route is null and m.at >= greatest(first, added + interval '1 minute')
        group by m.at
    ), steps as (
        select date_bin(step, m.at, 'epoch') as at, sum(m.sent) as sent, sum(m.retried) as retried,
               sum(m.failed) as failed, sum(m.recorded) as recorded, max(m.waiting) as waiting
        from minutes m group by 1
    )
    select g, case when route is null then round(i.rate * extract(epoch from step)) end, coalesce(s.sent, 0)::bigint,
           coalesce(s.retried, 0)::bigint, coalesce(s.failed, 0)::bigint, coalesce(s.recorded, 0)::bigint,
           coalesce(nullif(s.waiting, 0), case when i.noted then 0 end)::bigint
    from generate_series(first, upto, step) g
    left join steps s on s.at = g
    left join inflow i on i.at = g
    order by 1;
end
$$;
comment on function tidemark.history(text, interval, interval) is
    'What a route did (route_code null: all routes), one row a step from since ago until now, without gaps: events '
    'sent, attempts that failed and are made again (retried), dead letters (failed), events recorded and not delivered '
    '(recorded: dry_run, disabled, skipped), and how many waited at most (of each route counted up to 10000). emitted: '
    'numbers that writers took from the log, of all routes alone. emitted and waiting are noted by tidemark.maintain; '
    'null: it did not run. Kept for 7 days, by the hour once it is a day old: a step of less than an hour shows these '
    'at the first minute of their hour. Raises TM004, TM005.';
grant execute on function tidemark.history(text, interval, interval) to tidemark_reader, tidemark_executor;
