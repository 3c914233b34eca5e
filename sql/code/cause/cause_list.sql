-- The only place that tells a cause from its symptoms. tidemark.queue_health and tidemark.finding have the rules of
-- what is wrong; the functions below find the causes that these rows only hint at, or that no row shows.
create or replace function tidemark.cause_list()
returns table (
    status text,
    cause text,
    subject text,
    since timestamptz,
    found text,
    waiting bigint,
    symptoms text[],
    means text,
    todo text,
    sql text[],
    cli text[],
    finding bigint)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
-- Read what is bounded by a limit in the order of an index, and do not sort all of it.
set enable_sort = off
set enable_incremental_sort = off
set jit = off
-- To plan it anew takes a tenth of the time, and nothing depends on its parameters.
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    daemon constant text := (
        select h.executor_id from tidemark.heartbeat_health h
        where h.executor_id like 'daemon/%' and h.state = 'alive' limit 1);
    stopped constant text := (
        select format('; the last one, %s, stopped at %s', substr(h.executor_id, 8),
                      date_trunc('second', h.last_beat_at))
        from tidemark.heartbeat_health h where h.executor_id like 'daemon/%' and h.last_status = 'stopped'
        order by h.last_beat_at desc limit 1);
begin
    return query
    with known as materialized (
        select t.* from tidemark.cause_locks() t where t.status = 'bad'
        union all
        select t.* from tidemark.cause_transactions() t
        where not exists (select from tidemark.cause_locks() l where l.status = 'bad' and l.subject = t.subject)
        union all
        select t.* from tidemark.cause_daemons() t
        union all
        select t.* from tidemark.cause_gates() t
        union all
        select t.* from tidemark.cause_paused() t
        union all
        select t.* from tidemark.cause_jobs() t
        union all
        select t.* from tidemark.cause_routes() t
        union all
        select t.* from tidemark.cause_tables() t
        union all
        select t.* from tidemark.cause_sweeps() t
        union all
        select t.* from tidemark.cause_storage() t
        union all
        select t.* from tidemark.cause_disk() t
        union all
        select t.* from tidemark.cause_clock() t
        union all
        select t.* from tidemark.cause_upkeep() t
    ), row_ as materialized (
        select h.kind, h.name, h.status, h.age_seconds, h.count, h.note, h.kind || ' ' || h.name as symptom,
               case when h.kind = 'finding' then h.kind || ' ' || split_part(h.name, ' ', 1) else h.kind end
                   || ' *' as any_of_kind
        from tidemark.queue_health h where h.status <> 'ok' and h.kind <> 'dead_letter_event'
        union all
        -- Read the dead letters of routes once: each route that has any is a cause already.
        select text 'dead_letter_event', k.subject, 'warn', null, k.waiting, '', 'dead_letter_event ' || k.subject,
               'dead_letter_event *'
        from known k where k.cause = 'dead_letters'
    ), explained as materialized (
        select k.cause, k.subject, r.symptom, r.status
        from known k cross join lateral unnest(k.folds) f (symptom) join row_ r on r.symptom = f.symptom
        union all
        select k.cause, k.subject, r.symptom, r.status
        from known k cross join lateral unnest(k.folds) f (symptom) join row_ r on r.any_of_kind = f.symptom
    ), folded as materialized (
        select distinct e.symptom from explained e
    ), found_ as materialized (
        -- Findings whose cause is none of these are causes of their own.
        select r.*, f.id, tidemark.finding_cause(f.kind) as cause,
               f.subject, f.opened_at, f.acked_by, f.ack_note, f.count as sightings,
               case f.kind when 'cursor_silent_gap' then array['cursor ' || f.subject, 'heartbeat ' || f.subject,
                                                               'backlog ' || f.subject, 'pending_row ' || f.subject,
                                                               'finding cursor_lag ' || f.subject]
                           when 'cursor_holes' then array['cursor ' || n.name, 'backlog ' || n.name,
                                                          'finding cursor_lag ' || n.name]
                           when 'heartbeat_silent' then array['heartbeat ' || f.subject]
                           when 'cursor_lag' then array['backlog ' || f.subject]
                           when 'target_down' then array['pending ' || f.subject]
                           when 'credentials_refused' then array['pending ' || f.subject]
                           when 'two_copies' then array['pending ' || f.subject]
                           when 'route_misconfigured' then array['pending ' || f.subject]
                           when 'command_waiting' then array['command_parked ' || f.subject]
                           else '{}' end as folds
        from row_ r
        join tidemark.finding f on f.closed_at is null and r.name = f.kind || ' ' || f.subject
        -- The subject is the worker, or one of its shards.
        cross join lateral (select case when f.subject like '%/outbox/%' then f.subject
                                        else f.subject || '/outbox/0' end as name) n
        where r.kind = 'finding' and not exists (select from folded d where d.symptom = r.symptom)
    ), reported as materialized (
        -- The symptoms of findings.
        select f.id, r.symptom, r.status, r.kind, r.age_seconds, r.count
        from found_ f cross join lateral unnest(f.folds) s (symptom) join row_ r on r.symptom = s.symptom
    ), of_finding as materialized (
        select p.id, bool_or(p.status = 'bad') as bad,
               max(p.age_seconds) filter (where p.kind in ('heartbeat', 'backlog')) as age_seconds,
               sum(p.count) filter (where p.kind in ('pending_row', 'backlog', 'command_parked'))::bigint as waiting
        from reported p group by 1
    ), told as materialized (
        select e.symptom from explained e union select p.symptom from reported p
    ), trouble as materialized (
        select k.cause, k.subject,
               -- Of a copy, what is bad is a symptom of the original. How bad the silence of a daemon is, depends on
               -- the others (tidemark.cause_daemons).
               case when k.cause <> 'disarmed'
                         and (k.cause, k.subject) in (
                             select e.cause, e.subject from explained e
                             where e.status = 'bad' and e.symptom <> 'heartbeat ' || e.subject
                               and e.symptom <> 'finding heartbeat_silent ' || e.subject)
                    then 'bad' else k.status end as status,
               k.since, k.found, k.waiting, k.folds, k.sql, k.cli, null::bigint as id
        from known k
        union all
        select f.cause, f.subject,
               case when f.status = 'bad' or o.bad then 'bad' else f.status end,
               least(f.opened_at, clock_timestamp() - make_interval(secs => o.age_seconds)),
               f.note || case when f.sightings > 1 then format(' (seen %s times)', f.sightings) else '' end
                   || coalesce('; acknowledged by ' || f.acked_by || ': ' || f.ack_note, ''),
               -- Deliveries to a target that is down wait without being due.
               (select count(*)
                from (select from tidemark.outbound_route o join tidemark.pending p on p.route_id = o.id
                      where o.route_code = f.subject and f.folds = array['pending ' || f.subject]
                      order by p.replay, p.next_attempt_at limit 10000) p)
                   + coalesce(o.waiting, 0),
               f.folds, null,
               -- Which topics a daemon has, its beat does not tell: when to forget one, the runbook says.
               case when f.cause = 'cursor_silent_gap' and f.subject like 'commands/kafka:%'
                    then array['tidemark run'] end,
               f.id
        from found_ f left join of_finding o on o.id = f.id
        where not exists (select from reported g where g.symptom = f.symptom)
        union all
        select case r.kind when 'backlog' then 'worker_behind' else r.kind end, r.name, r.status,
               clock_timestamp() - make_interval(secs => r.age_seconds), r.note,
               case when r.kind not in ('heartbeat', 'cursor') then r.count end, array[r.symptom], null, null, null
        from row_ r
        where r.kind <> 'finding' and not exists (select from told d where d.symptom = r.symptom)
          and not (r.kind = 'pending' and daemon is null)
        union all
        select 'no_daemon', 'daemon', case when bool_or(r.status = 'bad') then 'bad' else 'warn' end,
               clock_timestamp() - make_interval(secs => max(r.age_seconds)),
               format('no daemon runs%s; deliveries are due of %s', stopped,
                      string_agg(format('%s (%s)', r.name, r.count), ', ' order by r.name)),
               sum(r.count)::bigint, array_agg(r.symptom), null, null, null
        from row_ r
        where r.kind = 'pending' and daemon is null and not exists (select from told d where d.symptom = r.symptom)
        having count(*) > 0
    ), symptoms as materialized (
        -- Of what is known these are told already; the others have no "*".
        select x.cause, x.subject, array_agg(distinct x.symptom order by x.symptom) as symptoms
        from (select e.cause, e.subject, e.symptom from explained e
              union all
              select t.cause, t.subject, r.symptom
              from trouble t cross join lateral unnest(t.folds) f (symptom) join row_ r on r.symptom = f.symptom) x
        group by 1, 2
    )
    select t.status, t.cause, t.subject, date_trunc('second', t.since),
           coalesce(l.found, t.found) || coalesce('; acknowledged by ' || f.acked_by || ': ' || f.ack_note, ''),
           nullif(coalesce(l.waiting, t.waiting), 0),
           coalesce(y.symptoms, '{}'),
           coalesce(k.means, 'This version does not know this kind of finding; the facts say what was found.'),
           coalesce(k.todo, 'See docs/operations.md of the version that is installed.'),
           coalesce(t.sql, tidemark.cause_commands(k.sql, t.subject, false)),
           coalesce(t.cli, tidemark.cause_commands(k.cli, t.subject, true)), coalesce(t.id, f.id)
    from trouble t left join tidemark.cause_kind k on k.cause = t.cause
    -- What tidemark.watch has made of it.
    left join tidemark.finding f on t.id is null and f.closed_at is null
        and f.kind = tidemark.finding_kind(t.cause) and f.subject = t.subject
    left join symptoms y on y.cause = t.cause and y.subject = t.subject
    left join tidemark.cause_lag(array(select b.subject from trouble b where b.cause = 'worker_behind')) l
        on l.name = t.subject and t.cause = 'worker_behind'
    order by array_position('{bad,unknown,warn}'::text[], t.status), date_trunc('second', t.since) nulls last,
             t.cause, t.subject;
end
$$;
comment on function tidemark.cause_list() is
    'The rows of tidemark.cause, worst first. Reads tidemark.queue_health once.';
grant execute on function tidemark.cause_list() to tidemark_reader, tidemark_executor;
