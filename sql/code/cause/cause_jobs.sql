create or replace function tidemark.cause_jobs()
returns setof tidemark.trouble
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    clock constant timestamptz := clock_timestamp();
    patience constant interval := '5 minutes';
    daemons record;
begin
    if not exists (select from tidemark.letter_job j
                   where j.finished_at is null and least(j.waits_since, j.due_at) < clock - patience) then
        return; -- mostly none is
    end if;
    select coalesce(bool_or(h.state = 'alive'), false) as alive, coalesce(bool_or(h.state = 'silent'), false) as silent
    into daemons
    from tidemark.heartbeat_health h where h.executor_id like 'daemon/%';
    return query
    select 'letter_job_waiting', j.id::text, 'warn', least(j.waits_since, j.due_at),
           format('job %s, a %s of dead letters%s by %s, has done %s of %s; %s', j.id, j.action,
                  ' of route ' || n.route_code, j.requested_by, j.done, j.letters,
                  case when a.is_full then format('the %s%s that it tried again before wait: %s', a.letters,
                                                  case when j.route_id is null then ' of route ' || r.route_code end,
                                                  coalesce('closed by ' || nullif(g.gate, 'paused'), g.gate,
                                                           'the route is off'))
                       when j.waits_for is not null then j.waits_for
                       when daemons.alive then 'no daemon takes it up'
                       else 'no daemon runs' end),
           greatest(j.letters - j.done, 0), '{}'::text[],
           array[coalesce(o.sql, format('select * from tidemark.letter_job_summary where id = %s;', j.id))],
           array[coalesce(o.cli, case when not daemons.alive and j.waits_for is null then 'tidemark run' end,
                          'tidemark dead-letter job list --open')]
    from tidemark.letter_job j
    left join tidemark.route_name n on n.id = j.route_id
    cross join lateral tidemark.letter_job_ahead(j) a
    left join tidemark.outbound_route r on r.id = coalesce(j.route_id, a.route_id)
    cross join lateral (
        select case when r.id is not null and j.action = 'replay'
                         then coalesce(
                             tidemark.closed_delivery(r.worker, r.domain, r.id),
                             -- Of a route of all domains the worker is at what is of others.
                             (select format('domain.%s.enabled', min(c.domain))
                              from (select p.domain from tidemark.pending p
                                    where a.is_full and r.domain = '*' and p.route_id = r.id and p.replay
                                      and p.domain = any (tidemark.closed_domains()) limit a.letters) c
                              having count(*) = a.letters)) end as gate) g
    cross join lateral tidemark.gate_opening(g.gate, r.worker, 'a job waits') o
    where j.finished_at is null
      and case when j.waits_since < clock - patience then true
               when j.due_at >= clock - patience then false
               -- The worker is at what the job handed to it.
               when a.is_full then g.gate is not null or not tidemark.route_delivers(r)
               -- It was full until just now, maybe.
               when daemons.alive then coalesce(a.letters, 0) = 0
               -- Else daemon_dead tells it.
               else not daemons.silent end;
end
$$;
comment on function tidemark.cause_jobs() is
    'The part of tidemark.cause about jobs of dead letters (tidemark.letter_job_add): letter_job_waiting, where no '
    'part was done for 5 minutes, and the worker is not at what the job has handed to it.';
grant execute on function tidemark.cause_jobs() to tidemark_reader, tidemark_executor;
