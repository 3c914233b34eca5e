-- public
create or replace view tidemark.route_summary as
select r.route_code, r.worker, r.target_kind,
       case when not r.enabled then 'off' when r.dry_run then 'dry run' else 'live' end as state,
       coalesce(d.sent, 0) + a.sent as sent, a.retried, a.failed as dead,
       p.pending, p.retrying,
       floor(extract(epoch from clock_timestamp() - f.created_at))::bigint as oldest_pending_seconds,
       l.open as open_dead_letters,
       case when exists (select from tidemark.finding t
                         where t.kind in ('target_down', 'credentials_refused', 'two_copies')
                           and t.subject = r.route_code and t.closed_at is null) then 'open'
            when exists (select from tidemark.finding t
                         where t.kind = 'route_misconfigured' and t.subject = r.route_code
                           and t.closed_at is null) then 'misconfigured'
       end as breaker
from tidemark.outbound_route r
join tidemark.worker w on w.worker = r.worker
cross join lateral (
    select sum(d.events) filter (where d.outcome = 'sent')::bigint as sent
    from (select d.outcome, d.events from tidemark.decision d
          where d.worker_id = w.id and d.route_id = r.id order by d.last_seq desc limit 100) d) d
cross join lateral (
    select count(*) filter (where a.outcome = 'sent') as sent,
           count(*) filter (where a.outcome = 'pending' and a.detail is not null) as retried,
           count(*) filter (where a.outcome = 'failed') as failed
    from (select a.outcome, a.detail from tidemark.attempt a
          where a.worker_id = w.id and a.route_id = r.id order by a.seq desc limit 1000) a) a
cross join lateral (
    select count(*) as pending, count(*) filter (where p.error_count > 0) as retrying
    from (select p.error_count from tidemark.pending p where p.route_id = r.id
          order by p.replay, p.next_attempt_at limit 10000) p) p
left join lateral (
    select p.created_at from tidemark.pending p where p.worker_id = w.id and p.route_id = r.id
    order by p.seq limit 1) f on true
cross join lateral (select count(*) as open from tidemark.open_letter l where l.route_id = r.id) l;
comment on view tidemark.route_summary is
    'How each route is doing. sent, retried and dead count its newest evidence (100 batches and 1000 single '
    'attempts), so that no growing table is read. pending, retrying (those of pending that were tried before) and '
    'open_dead_letters are counted up to 10000. The first pending event has waited for oldest_pending_seconds. '
    'breaker: open (finding target_down, credentials_refused or two_copies), misconfigured, or null.';
grant select on tidemark.route_summary to tidemark_reader, tidemark_executor;
