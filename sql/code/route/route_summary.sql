-- public
create or replace view tidemark.route_summary as
select r.route_code, r.worker, r.target_kind,
       case when not r.enabled then 'off' when r.dry_run then 'dry run' when r.paused_at is not null then 'paused'
            else 'live' end as state,
       coalesce(m.sent, 0) as sent, coalesce(m.retried, 0) as retried, coalesce(m.dead, 0) as dead,
       p.pending, p.retrying,
       floor(extract(epoch from clock_timestamp() - f.created_at))::bigint as oldest_pending_seconds,
       l.open as open_dead_letters,
       case when exists (select from tidemark.finding t
                         where t.kind in ('target_down', 'credentials_refused', 'two_copies')
                           and t.subject = r.route_code and t.closed_at is null) then 'open'
            when exists (select from tidemark.finding t
                         where t.kind = 'route_misconfigured' and t.subject = r.route_code
                           and t.closed_at is null) then 'misconfigured'
       end as breaker, r.paused_at
from tidemark.outbound_route r
join tidemark.worker w on w.worker = r.worker
-- Left joins: the server leaves out sums whose columns are not asked for.
left join lateral (
    select sum(m.sent)::bigint as sent, sum(m.retried)::bigint as retried, sum(m.failed)::bigint as dead
    from tidemark.route_minute m where m.route_id = r.id and m.at > statement_timestamp() - interval '1 hour') m on true
left join lateral (
    select count(*) as pending, count(*) filter (where p.error_count > 0) as retrying
    from (select p.error_count from tidemark.pending p where p.route_id = r.id
          order by p.replay, p.next_attempt_at limit 10000) p) p on true
left join lateral (
    select p.created_at from tidemark.pending p where p.worker_id = w.id and p.route_id = r.id
    order by p.seq limit 1) f on true
left join lateral (select count(*) as open from tidemark.open_letter l where l.route_id = r.id) l on true;
comment on view tidemark.route_summary is
    'How each route is doing. sent, retried and dead are those of the last hour, as in tidemark.history. pending, '
    'retrying (those of pending that were tried before) and open_dead_letters are counted up to 10000. The first '
    'pending event has waited for oldest_pending_seconds. '
    'breaker: open (finding target_down, credentials_refused or two_copies), misconfigured, or null. '
    'state: off, dry run, paused or live; a route that is off or in dry run may be paused too: paused_at, since when.';
grant select on tidemark.route_summary to tidemark_reader, tidemark_executor;
