-- A function, so that a scrape is not compiled: that would take longer than all the rest.
create or replace function tidemark.scrape()
returns jsonb
language sql volatile
set search_path = pg_catalog, pg_temp
set jit = off
as $$
    select jsonb_build_object(
        'items', (select jsonb_agg(jsonb_build_object('kind', q.kind, 'name', q.name, 'status', q.status,
                                                      'age_seconds', q.age_seconds, 'count', q.count)
                                   order by array_position('{bad,unknown,warn,ok}'::text[], q.status), q.kind, q.name)
                  from tidemark.queue_health q where q.kind <> 'finding'),
        'causes', (select jsonb_agg(jsonb_build_object('cause', tidemark.finding_cause(f.kind), 'subject', f.subject,
                                                       'severity', f.severity, 'count', f.count)
                                    order by f.severity desc, f.opened_at)
                   from tidemark.finding f where f.told = 'opened' and f.closed_at is null),
        'cursors', (select jsonb_agg(jsonb_build_object('worker', l.worker, 'source', l.source, 'shard', l.shard,
                                                        'seconds', l.seconds, 'holes', l.holes,
                                                        'last_run_at', l.last_run_at,
                                                        'events', case when l.source = 'outbox' then l.events end))
                    from tidemark.cursor_lag l),
        'gates', (select jsonb_object_agg(g.gate, tidemark.gate_open(g.gate))
                  from (select unnest('{routes.enabled,notify.bridge_enabled,notify.listeners_enabled}'::text[]) as gate
                        union select 'commands.enabled' from tidemark.service
                        union select 'commands.' || s.service || '.enabled' from tidemark.service s
                        union select s.key from tidemark.setting s where s.key like 'domain.%.enabled'
                        union select 'worker.' || w.worker || '.enabled' from tidemark.worker w
                              where w.source <> 'kafka') g),
        'paused', (select jsonb_agg(r.route_code order by r.route_code) from tidemark.outbound_route r
                   where r.paused_at is not null),
        'parked', (select jsonb_object_agg(s.service, (
                       select count(*) from (select from tidemark.command_parked p where p.service = s.service
                                             limit 10000) p))
                   from tidemark.service s),
        'unregistered', (select jsonb_agg(u) from tidemark.unregistered_emits u),
        'live', (select s.stage = 'live' from tidemark.stage s), 'armed', tidemark.armed())
$$;
comment on function tidemark.scrape() is
    'What /metrics of a daemon shows of the database: tidemark.queue_health, the causes that tidemark.watch has told, '
    'cursors, gates, paused routes, the stage.';
grant execute on function tidemark.scrape() to tidemark_reader, tidemark_executor;
