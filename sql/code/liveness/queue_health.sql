-- public
-- Every part is bounded: rows of configuration, single index lookups, counts that stop at 10000.
create or replace view tidemark.queue_health as
with bound as (
    select extract(epoch from tidemark.interval_setting('lag.warn', '1 minute')) as warn,
           extract(epoch from tidemark.interval_setting('lag.bad', '15 minutes')) as bad
), cursor as materialized (
    select l.*, l.worker || '/' || l.source || '/' || l.shard as name,
           case when l.source = 'outbox' then array_to_string(w.domains, ',') end as domain
    from tidemark.cursor_lag l join tidemark.worker w on w.worker = l.worker
), beat as materialized (
    select h.* from tidemark.heartbeat_health h
), waiting as materialized (
    select r.route_code, r.worker, p.*
    from tidemark.outbound_route r
    cross join lateral (
        select count(*) as n, count(*) filter (where p.error_count > 0) as retried
        from (select p.error_count from tidemark.pending p where p.route_id = r.id
              order by p.replay, p.next_attempt_at limit 10000) p) p
    where p.n > 0
), closed as materialized (
    -- A worker that has a cursor is not asked again.
    select distinct c.worker, c.gate from cursor c
    union all
    select w.worker, tidemark.closed_gate(w.worker)
    from (select p.worker from waiting p except select c.worker from cursor c) w
), dead as materialized (
    select r.route_code, nullif(r.domain, '*') as domain, l.n, l.last_failed_at
    from tidemark.outbound_route r
    cross join lateral (
        select count(*) as n, max(l.last_failed_at) as last_failed_at
        from tidemark.open_letter l where l.route_id = r.id) l
    where l.n > 0
), row_ as materialized (
    -- Rows of tables that failed.
    select c.name, c.gate, c.last_run_at, p.waiting, p.since, p.overdue, d.dead, d.last_failed_at
    from cursor c join tidemark.worker w on w.worker = c.worker
    cross join lateral (
        select count(*) as waiting, min(p.created_at) as since,
               greatest(floor(extract(epoch from clock_timestamp() - min(p.next_attempt_at))), 0)::bigint as overdue
        from (select p.created_at, p.next_attempt_at from tidemark.pending_row p
              where p.worker_id = w.id and p.source = c.source and p.shard = c.shard
              order by p.next_attempt_at limit 10000) p) p
    cross join lateral (
        select count(*) as dead, max(l.last_failed_at) as last_failed_at
        from (select l.last_failed_at from tidemark.dead_letter l
              where l.worker_id = w.id and l.source = c.source and l.shard = c.shard and l.route_id is null
                and l.resolved_at is null
              order by l.last_failed_at desc limit 10000) l) d
    where c.source <> 'outbox'
)
select 'cursor' as kind, c.name,
       case when c.gate is not null then 'ok' when c.blocked_by is not null or b.state = 'silent' then 'bad'
            when c.last_run_at is null then 'warn' else 'ok' end as status,
       floor(extract(epoch from clock_timestamp() - c.last_run_at))::bigint as age_seconds,
       c.holes as count,
       jsonb_build_object('events_seen', c.events_seen, 'attempts_written', c.attempts_written,
                          'dead_lettered', c.dead_lettered, 'holes', c.holes, 'rate', c.rate) as numbers,
       case when c.gate is not null then case c.gate when 'paused' then 'paused' else 'closed by ' || c.gate end
            when c.blocked_by is not null then 'waits: too many numbers below it are kept open by ' || c.blocked_by
            when c.last_run_at is null then 'never run' when b.state = 'silent' then 'silent' else '' end as note,
       c.domain, c.last_run_at as last_seen_at, null as status_hint
from cursor c left join beat b on b.executor_id = c.name
union all
select 'backlog', c.name,
       case when c.gate is not null or c.seconds <= w.warn then 'ok' when c.seconds <= w.bad then 'warn'
            when c.seconds is null then 'unknown' else 'bad' end,
       c.seconds, c.events,
       jsonb_build_object('events', c.events, 'seconds', c.seconds, 'rate', c.rate),
       case when c.gate is not null then case c.gate when 'paused' then 'paused' else 'closed by ' || c.gate end
            when c.seconds is null then 'this role may not read the table, and no role that may read it has called '
                                        'maintain lately' else '' end,
       c.domain, c.last_run_at, null
from cursor c, bound w
union all
select 'heartbeat', b.executor_id,
       case when b.state = 'silent' then 'bad' when b.state = 'alive' and b.last_status like 'failed%' then 'warn'
            else 'ok' end,
       b.age_seconds, b.ticks_total,
       jsonb_build_object('age_seconds', b.age_seconds, 'cadence_seconds', b.expected_cadence_seconds,
                          'threshold_seconds', b.stale_threshold_seconds, 'ticks_total', b.ticks_total),
       case b.state when 'quiet' then b.excuse when 'silent' then 'silent; it last said ' || b.last_status
            else b.last_status end,
       nullif(array_to_string(b.domain_scope, ','), ''), b.last_beat_at,
       case b.state when 'silent' then 'stale' when 'alive' then 'fresh' else b.state end
from beat b
union all
select 'dead_letter_event', d.route_code, 'warn',
       floor(extract(epoch from clock_timestamp() - d.last_failed_at))::bigint, d.n,
       jsonb_build_object('open', d.n),
       case when d.n = 10000 then '10000 or more' else '' end,
       d.domain, d.last_failed_at, 'open'
from dead d
union all
select 'dead_letter_row', r.name, 'warn',
       floor(extract(epoch from clock_timestamp() - r.last_failed_at))::bigint, r.dead,
       jsonb_build_object('open', r.dead),
       case when r.dead = 10000 then '10000 or more' else '' end,
       null, r.last_failed_at, 'open'
from row_ r where r.dead > 0
union all
select 'pending_row', r.name,
       case when r.gate is not null or r.overdue <= w.warn then 'ok' when r.overdue <= w.bad then 'warn' else 'bad' end,
       r.overdue, r.waiting,
       jsonb_build_object('waiting', r.waiting, 'retried', r.waiting, 'overdue_seconds', r.overdue,
                          'waiting_seconds', floor(extract(epoch from clock_timestamp() - r.since))::bigint),
       case when r.waiting = 10000 then '10000 or more' else '' end,
       null, r.last_run_at, null
from row_ r, bound w where r.waiting > 0
union all
select 'pending', p.route_code,
       case when g.gate is not null or r.paused_at is not null or coalesce(t.overdue, 0) <= w.warn then 'ok'
            when t.overdue <= w.bad then 'warn' else 'bad' end,
       t.overdue, p.n,
       jsonb_build_object('waiting', p.n, 'retried', p.retried, 'overdue_seconds', t.overdue),
       concat_ws('; ', case when r.paused_at is not null then 'paused' end,
                 case when p.n = 10000 then '10000 or more' end),
       nullif(r.domain, '*'), null, null
from waiting p join tidemark.outbound_route r on r.route_code = p.route_code
join closed g on g.worker = p.worker
cross join bound w
cross join lateral (
    -- Omit "< clock_timestamp()": an index cannot use that condition. And no min(): a plan that was made while little
    -- waited would look for it in the whole table.
    select greatest(floor(extract(epoch from clock_timestamp() - nullif(least(
        (select n.next_attempt_at from tidemark.pending n where n.route_id = r.id and not n.replay
         order by n.next_attempt_at limit 1),
        (select n.next_attempt_at from tidemark.pending n where n.route_id = r.id and n.replay
         order by n.next_attempt_at limit 1)),
        'infinity'))), 0)::bigint as overdue) t
union all
select 'job_backlog', j.name,
       case when not j.readable then 'unknown' when coalesce(j.oldest_seconds, 0) <= w.warn then 'ok'
            when j.oldest_seconds <= w.bad then 'warn' else 'bad' end,
       j.oldest_seconds, j.waiting + j.retrying,
       jsonb_build_object('waiting', j.waiting, 'retrying', j.retrying),
       case when not j.readable then 'this role may not read the table'
            when greatest(j.waiting, j.retrying) = 10000 then '10000 or more' else '' end,
       null, null, null
from tidemark.river_health() j, bound w
union all
select 'dead_letter_job', j.name, 'warn', j.dead_seconds, j.dead,
       jsonb_build_object('discarded', j.dead),
       case when j.dead = 10000 then '10000 or more' else '' end,
       null, clock_timestamp() - make_interval(secs => j.dead_seconds), 'open'
from tidemark.river_health() j where j.dead > 0
union all
select 'command_parked', s.service,
       case when c.gate is not null or coalesce(p.overdue, 0) <= w.warn then 'ok' when p.overdue <= w.bad then 'warn'
            else 'bad' end,
       p.overdue, p.n, jsonb_build_object('waiting', p.n, 'retried', p.retried, 'overdue_seconds', p.overdue),
       coalesce('closed by ' || c.gate, case when p.n = 10000 then '10000 or more' else '' end), 'commands', null, null
from tidemark.service s
cross join bound w
cross join lateral tidemark.closed_command(s.service) c (gate)
cross join lateral (
    select count(*) as n, count(*) filter (where p.error_count > 0) as retried,
           greatest(floor(extract(epoch from clock_timestamp()
                                  - nullif(min(p.next_attempt_at), 'infinity'))), 0)::bigint as overdue
    from (select p.error_count, p.next_attempt_at from tidemark.command_parked p
          where p.service = s.service order by p.next_attempt_at limit 10000) p) p
where p.n > 0
union all
select 'finding', f.kind || ' ' || f.subject,
       case when f.severity >= 'high' then 'bad' when f.severity = 'warning' then 'warn' else 'ok' end,
       floor(extract(epoch from clock_timestamp() - f.opened_at))::bigint, f.count,
       jsonb_build_object('finding', f.id, 'count', f.count, 'severity', f.severity),
       d.detail, null, f.last_seen_at, 'open'
from tidemark.finding f join tidemark.finding_detail d on d.id = f.id
-- What an operator has replayed or discarded is over at once, and the watch closes the finding later.
where f.closed_at is null and not f.derived and not tidemark.letters_over(f.kind, f.subject);
comment on view tidemark.queue_health is
    'One view for watchdogs, a row for each item: kind cursor, backlog (of a cursor), heartbeat, dead_letter_event and '
    'pending (of a route, where it has any), dead_letter_row and pending_row (likewise of a cursor of a table), '
    'job_backlog and dead_letter_job (of River, where it is installed), command_parked (of a service, where it has '
    'any), finding (open, and not derived from the view cause). status: ok, warn (an operator '
    'should look), bad (a part does not work) or unknown. age_seconds: time since the last run, beat or failure; for '
    'waiting items the age of the oldest. count: items that wait or are open; for a cursor its holes, for a heartbeat '
    'its beats. domain: the domains concerned, separated by commas; null: all, or none. last_seen_at: the latest run, '
    'beat, failure or sighting. status_hint: stale or fresh (quiet: excused) for a heartbeat, open for items '
    'that an operator must close, else null. Items that are switched off on purpose are ok, and note says so. Reads '
    'configuration, cursors and indexes, never a table that grows. Source: S4 v_queue_health.';
grant select on tidemark.queue_health to tidemark_reader, tidemark_executor;
