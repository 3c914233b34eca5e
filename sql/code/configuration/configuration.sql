-- public
create or replace function tidemark.configuration()
returns table (place integer, kind text, name text, definition jsonb, file text)
language sql stable
set search_path = pg_catalog, pg_temp
set intervalstyle = 'postgres'
set extra_float_digits = 1
as $$
    with thing (kind, name, columns, more) as (
        select 'domain', d.domain, to_jsonb(d),
               case when d.restricted then jsonb_build_object('emitters', (
                   select jsonb_agg(e.role order by e.role) from tidemark.domain_emitter e
                   where e.domain = d.domain)) end
        from tidemark.domain d where d.domain not in ('system', 'commands')
        union all
        select 'type', t.domain || '/' || t.type, to_jsonb(t) - '{unchecked,schema_digest}'::text[], null
        from tidemark.event_type t where t.domain not in ('system', 'commands')
        union all
        select 'capture', r.route_code, to_jsonb(r), jsonb_build_object('trigger', (
            select l.trigger from tidemark.capture_list l
            where l.route_code = r.route_code and l.trigger in ('attached', 'always')))
        from tidemark.inbound_route r
        union all
        select 'source', s.source, to_jsonb(s),
               jsonb_build_object('table', format('%I.%I', s.schema_name, s.table_name))
        from tidemark.source s
        union all
        select 'worker', w.worker, to_jsonb(w), jsonb_build_object('sources', (
            select jsonb_agg(distinct c.source) from tidemark.worker_cursor c
            where c.worker = w.worker and c.source <> 'outbox'))
        from tidemark.worker w where w.source <> 'kafka'
        union all
        select 'route', r.route_code, to_jsonb(r), null from tidemark.outbound_route r
    ), known (place, kind, name, definition) as (
        select k.place, t.kind, t.name, jsonb_strip_nulls(coalesce(t.more, '{}')) || coalesce((
            select jsonb_object_agg(c.key, c.value) from jsonb_each(t.columns - k.fixed) c
            where c.value is distinct from coalesce(k.defaults -> c.key, 'null')), '{}')
        from thing t join (select * from tidemark.configuration_kind offset 0) k on k.kind = t.kind
        union all
        select 7, 'heartbeat', h.executor_id, jsonb_strip_nulls(jsonb_build_object(
            'kind', nullif(h.kind, 'external_worker'), 'domain_scope', nullif(h.domain_scope, '{}'),
            'expected_cadence_seconds', nullif(h.expected_cadence_seconds, 60),
            'stale_threshold_seconds', nullif(h.stale_threshold_seconds, 3 * h.expected_cadence_seconds)))
        from tidemark.heartbeat h
        where h.executor_id not like 'daemon/%'
          and not exists (select from tidemark.worker_cursor c
                          where tidemark.executor_id(c.worker, c.source, c.shard) = h.executor_id)
        union all
        select 8, 'gate', s.key, jsonb_build_object('open', tidemark.gate_open(s.key))
        from tidemark.setting s
        where (s.key ~ '^(routes|commands|(worker|domain|commands)[.].+)[.]enabled$' or s.key ~ '^notify[.].+_enabled$')
          -- An earlier release could set a gate of the worker of commands, which obeys none.
          and not exists (select from tidemark.worker w
                          where w.source = 'kafka' and s.key = 'worker.' || w.worker || '.enabled')
    )
    select k.place, k.kind, k.name, k.definition, o.file
    from known k left join tidemark.owned o on o.kind = k.kind and o.name = k.name
$$;
comment on function tidemark.configuration() is
    'The configuration as tidemark.configuration_apply takes it: domains, types, captures (inbound routes), sources, '
    'workers, routes, heartbeats, gates that were set. definition has the columns that are not what they are by '
    'default; file: whose the thing is. Domains of Tidemark itself and services of commands are not in it.';
grant execute on function tidemark.configuration() to tidemark_reader;
