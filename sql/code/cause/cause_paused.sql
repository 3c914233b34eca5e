create or replace function tidemark.cause_paused()
returns setof tidemark.trouble
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select 'route_paused', r.route_code, 'warn', r.paused_at,
           format('paused since %s by %s, %s; %s', date_trunc('second', r.paused_at),
                  coalesce(a.actor, 'an unknown role'), coalesce('reason: ' || a.reason, 'without a reason'),
                  case when f.created_at is null then 'a replay waits'
                       else format('the oldest of what waits is %s old',
                                   date_trunc('second', clock_timestamp() - f.created_at)) end),
           w.n, '{}'::text[], array[o.sql], array[o.cli]
    from tidemark.outbound_route r
    join tidemark.worker v on v.worker = r.worker
    cross join lateral (
        select count(*) as n
        from (select from tidemark.pending p where p.route_id = r.id
              order by p.replay, p.next_attempt_at limit 10000) p) w
    left join lateral (
        select p.created_at from tidemark.pending p where p.worker_id = v.id and p.route_id = r.id
        order by p.seq limit 1) f on true
    left join lateral (
        select t.actor, t.reason from tidemark.audit t
        where t.object = 'outbound_route ' || r.route_code and t.after ->> 'paused_at' is not null
          and t.before ->> 'paused_at' is null
        order by t.id desc limit 1) a on true
    cross join lateral tidemark.gate_opening('route ' || r.route_code, r.worker, 'its events wait') o
    where r.paused_at is not null and r.enabled and not r.dry_run
      and (w.n > 0 or exists (
          select from tidemark.replay_job j where j.route_id = r.id and j.finished_at is null));
end
$$;
comment on function tidemark.cause_paused() is
    'The part of tidemark.cause about live routes that were paused, while events or a replay wait: route_paused.';
grant execute on function tidemark.cause_paused() to tidemark_reader, tidemark_executor;
