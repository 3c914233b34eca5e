create or replace function tidemark.cause_routes()
returns setof tidemark.trouble
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return query
    with letter as materialized (
        select r.id, r.route_code, r.worker, l.*
        from tidemark.outbound_route r
        cross join lateral (
            select l.error_code, count(*) as n, min(l.first_failed_at) as since, max(l.last_failed_at) as latest,
                   max(l.id) as example
            from tidemark.open_letter l where l.route_id = r.id group by 1) l
    ), route as (
        select l.id, l.route_code, l.worker, sum(l.n)::bigint as n, min(l.since) as since, max(l.latest) as latest,
               string_agg(format('%s × %s%s', l.n, l.error_code, ' (' || d.error_detail || ')'), '; '
                          order by l.n desc, l.error_code) as reasons,
               bool_and(l.error_code = 'event_missing') as lost
        from letter l left join tidemark.letter_detail d on d.id = l.example
        group by 1, 2, 3
    )
    select 'dead_letters', r.route_code,
           case when exists (select from tidemark.finding f where f.kind = 'dlq_overflow' and f.subject = r.worker
                             and f.closed_at is null) then 'bad' else 'warn' end,
           r.since,
           format('%s%s, the latest %s ago: %s', case when r.n = 10000 then 'at least ' end,
                  case r.n when 1 then '1 dead letter' else r.n || ' dead letters' end,
                  date_trunc('second', clock_timestamp() - r.latest), r.reasons),
           r.n,
           array['dead_letter_event ' || r.route_code, 'finding cursor_dlq ' || r.worker,
                 'finding dlq_overflow ' || r.worker, 'finding event_unreadable ' || r.worker],
           case when r.lost then array[
               format('select tidemark.dead_letter_discard(l.id, ''its event was dropped'') from '
                      'tidemark.dead_letter l where l.route_id = %s and l.error_code = ''event_missing'' and '
                      'l.resolved_at is null;', r.id)]
                else array[format('select outcome, count(*) from tidemark.dead_letter_replay_many(%L%s) group by 1;',
                                  r.route_code,
                                  -- By default it replays 1000.
                                  case when r.n > 1000 then ', max_letters => 50000' end)] end,
           case when r.lost then '{}' else array[
               format('tidemark dead-letter replay --route %s', tidemark.shell_word(r.route_code))] end
    from route r
    union all
    select 'slow_target', r.route_code, 'warn', s.since,
           format('a daemon delivers, and the target is slow: of its newest deliveries half took %s s or more, and 99 '
                  'of 100 up to %s s; %s go at once%s', s.median, s.slowest, r.concurrency,
                  case when r.ordering = 'key' then ', of each key one' end),
           p.n, array['pending ' || r.route_code],
           array[format('select tidemark.route_set(%L, ''{"concurrency": %s}'', ''its target is slow'');',
                        r.route_code, least(r.concurrency * 4, 1000))],
           array[format('tidemark route set %s --concurrency %s --reason ''its target is slow''',
                        tidemark.shell_word(r.route_code), least(r.concurrency * 4, 1000))]
    from (
        -- What the daemons that live say of their deliveries. Any executor can write anything there.
        select e.slow ->> 'route' as route_code, max(t.p99) as slowest, max(t.p50) as median, min(t.since) as since
        from tidemark.heartbeat_health h
        cross join lateral jsonb_array_elements(case jsonb_typeof(h.payload -> 'slow') when 'array'
                                                     then h.payload -> 'slow' end) e (slow)
        cross join lateral (
            select case jsonb_typeof(e.slow -> 'p50') when 'number' then (e.slow ->> 'p50')::numeric end as p50,
                   case jsonb_typeof(e.slow -> 'p99') when 'number' then (e.slow ->> 'p99')::numeric end as p99,
                   case when tidemark.is_rfc3339(e.slow ->> 'since')
                             then (e.slow ->> 'since')::timestamptz end as since) t
        where h.executor_id like 'daemon/%' and h.state = 'alive'
        group by 1) s
    join tidemark.outbound_route r on r.route_code = s.route_code and tidemark.route_delivers(r)
    cross join lateral (
        select count(*) as n
        from (select from tidemark.pending p where p.route_id = r.id
              order by p.replay, p.next_attempt_at limit 10000) p) p
    -- A target that keeps up may take its time. That of a target that is down is the time until the daemon gave up.
    where p.n > r.concurrency
      and not exists (select from tidemark.finding f
                      where f.kind in ('target_down', 'credentials_refused', 'two_copies')
                        and f.subject = s.route_code and f.closed_at is null)
    union all
    select 'emit_unregistered', 'emit', 'warn', min(u.first_at),
           format('%s emit%s stored nothing, since the type is not registered or not enabled: %s', sum(u.emits),
                  case when sum(u.emits) <> 1 then 's' end,
                  string_agg(format('%s/%s by %s (%s)', u.domain, u.type, u.role, u.emits), ', '
                             order by u.last_at desc, u.domain, u.type) filter (where u.place <= 5)
                  || case when count(*) > 5 then format(', and %s more', count(*) - 5) else '' end),
           null, array['finding emit_unregistered emit'],
           array_agg(distinct format('select tidemark.type_set(%L, %L, ''{"enabled": true}'');', u.domain, u.type))
               filter (where u.place <= 5 and u.domain <> '*'),
           array_agg(distinct format('tidemark type set %s %s --enabled', tidemark.shell_word(u.domain),
                                     tidemark.shell_word(u.type)))
               filter (where u.place <= 5 and u.domain <> '*')
    from (select u.*, row_number() over (order by u.last_at desc, u.domain, u.type, u.role) as place
          from tidemark.unregistered_emits u) u
    having count(*) > 0;
end
$$;
comment on function tidemark.cause_routes() is
    'The part of tidemark.cause about events and targets: dead_letters (of a route, by reason), slow_target (as a '
    'daemon measures it, while events wait), emit_unregistered.';
grant execute on function tidemark.cause_routes() to tidemark_reader, tidemark_executor;
