create or replace function tidemark.history_note()
returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
    -- The minute that has just ended: no settle adds to it any more, so none waits for this transaction.
    ended constant timestamptz := date_bin('1 minute', clock_timestamp(), 'epoch') - interval '1 minute';
    of_old timestamptz := date_bin('1 hour', ended - interval '1 day', 'epoch');
    kept constant timestamptz := ended - interval '7 days';
    -- Up to here the minutes of all routes are added up, and from now on up to there.
    done constant timestamptz := (
        select m.at from tidemark.route_minute m where m.route_id = 0 order by m.at desc limit 1);
    upto timestamptz;
    summed bigint;
begin
    insert into tidemark.log_minute (at, last_seq, ends)
    select ended, q.last_value - (not q.is_called)::integer, pg_current_xact_id()
    from tidemark.outbox_seq_seq q
    on conflict (at) do nothing;

    insert into tidemark.route_minute (route_id, at, waiting)
    select r.id, ended, p.n
    from tidemark.outbound_route r
    cross join lateral (
        select count(*) as n from (
            select from tidemark.pending p where p.route_id = r.id
            order by p.replay, p.next_attempt_at limit 10000) p) p
    where p.n > 0
    order by r.id
    on conflict (route_id, at) do update set waiting = excluded.waiting;

    -- A settle may commit long after its minute: add up what no transaction adds to any more, at most a day a call.
    upto := (
        select max(l.at) from tidemark.log_minute l
        where l.at < ended and l.at > coalesce(done, '-infinity')
          and l.ends <= pg_snapshot_xmin(pg_current_snapshot()));
    if upto is not null then
        upto := least(upto, (
            select m.at + interval '1 day' from tidemark.route_minute m
            where m.at > coalesce(done, '-infinity') order by m.at limit 1));
        insert into tidemark.route_minute (route_id, at, sent, retried, failed, recorded, waiting)
        select 0, m.at, sum(m.sent), sum(m.retried), sum(m.failed), sum(m.recorded), sum(m.waiting)
        from (select r.at, r.sent, r.retried, r.failed, r.recorded, r.waiting from tidemark.route_minute r
              where r.at > coalesce(done, '-infinity') and r.at <= upto
              union all
              select upto, 0, 0, 0, 0, 0) m
        group by m.at
        on conflict (route_id, at) do nothing;
    end if;

    -- The hour in which this has arrived stays as it is.
    of_old := least(of_old, date_bin('1 hour', coalesce(upto, done), 'epoch'));
    with old as (
        delete from tidemark.route_minute m
        where (m.route_id, m.at) in (
            select o.route_id, o.at from tidemark.route_minute o
            where o.at < of_old and o.at <> date_bin('1 hour', o.at, 'epoch') order by o.at limit 10000)
        returning m.*
    ), hours as (
        insert into tidemark.route_minute as h (route_id, at, sent, retried, failed, recorded, waiting)
        select o.route_id, date_bin('1 hour', o.at, 'epoch'), sum(o.sent), sum(o.retried), sum(o.failed),
               sum(o.recorded), max(o.waiting)
        from old o group by 1, 2
        on conflict (route_id, at) do update
        set sent = h.sent + excluded.sent, retried = h.retried + excluded.retried, failed = h.failed + excluded.failed,
            recorded = h.recorded + excluded.recorded, waiting = greatest(h.waiting, excluded.waiting)
    )
    select count(*) into summed from old;

    delete from tidemark.route_minute m where m.at < kept;
    delete from tidemark.log_minute m where m.at < kept;
    return summed;
end
$$;
comment on function tidemark.history_note() is
    'Part of tidemark.maintain: notes for the minute that has ended how much waits and how far the log is, adds up the '
    'routes of the minutes before it, sums up minutes older than a day by the hour, 10,000 a call, and forgets what is '
    'older than a week. Returns how many it summed up by the hour.';
