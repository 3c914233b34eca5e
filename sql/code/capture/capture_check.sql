-- public
create or replace function tidemark.capture_check()
returns table (object text, status text, problem text, hint text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    with route as (
        select r.*, format('%I.%I', r.source_schema, r.source_table) as name, c.oid as relation, c.relkind,
               c.relispartition, a.relation is not null as attached, a.enabled as fires, a.as_attached,
               e.type is not null as registered, e.metadata_only
        from tidemark.inbound_route r
        left join (pg_class c join pg_namespace n on n.oid = c.relnamespace)
            on n.nspname = r.source_schema and c.relname = r.source_table
        left join tidemark.capture_attached a on r.source_object_kind = 'table' and a.relation = c.oid
            and a.operation = r.sql_event
        left join tidemark.event_type e on e.domain = r.domain and e.type = r.type and e.enabled
    ), key as (
        select i.indrelid as relation, array_agg(a.attname::text) as columns
        from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey)
        where i.indisprimary group by 1
    ), found (object, status, problem, hint) as (
        -- A route may exist before its table, as a pack's routes do.
        select 'route ' || r.route_code, case when r.enabled then 'fail' else 'warn' end,
               format('there is no table %s', r.name), 'Was it renamed? Change source_schema or source_table.'
        from route r where r.source_object_kind <> 'function' and r.relation is null
        union all
        select 'route ' || r.route_code, case when r.enabled then 'fail' else 'warn' end,
               format('there is no function %s', r.name), 'Was it renamed? Change source_schema or source_table.'
        from route r
        where r.source_object_kind = 'function' and not exists (
            select from pg_proc p join pg_namespace n on n.oid = p.pronamespace
            where n.nspname = r.source_schema and p.proname = r.source_table)
        union all
        select 'route ' || r.route_code, case when r.enabled then 'fail' else 'warn' end,
               format('%s has no application trigger that fires for %s: nothing calls tidemark.inbound_emit',
                      r.name, r.sql_event),
               'Create it, or enable it.'
        from route r
        where r.source_object_kind = 'trigger' and r.relation is not null and not exists (
            select from pg_trigger t join pg_proc p on p.oid = t.tgfoid
            where t.tgrelid = r.relation and not t.tgisinternal and t.tgenabled in ('O', 'A')
              and p.pronamespace <> 'tidemark'::regnamespace
              and t.tgtype & case r.sql_event when 'insert' then 4 when 'delete' then 8 when 'update' then 16
                                  else 32 end <> 0)
        union all
        select 'route ' || r.route_code, case when r.enabled then 'fail' else 'warn' end,
               format('%s is %s, not a table', r.name,
                      case r.relkind when 'v' then 'a view' when 'm' then 'a materialized view'
                           when 'f' then 'a foreign table' else 'something else' end),
               'Capture the tables below it: change source_schema or source_table.'
        from route r where r.source_object_kind = 'table' and r.relkind not in ('r', 'p')
        union all
        select 'route ' || r.route_code, 'fail',
               format('%s is not attached for %s: its changes make no events', r.name, r.sql_event),
               format('As its owner: tidemark capture attach %s --reason …', r.name)
        from route r
        where r.source_object_kind = 'table' and r.enabled and r.relation is not null and r.relkind in ('r', 'p')
          and not r.attached
        union all
        select 'route ' || r.route_code, 'fail', format('%s has no column %s that can be shown', r.name, c.missing),
               'Change payload_columns.'
        from route r cross join lateral tidemark.capture_columns(r.relation, r.payload_columns) c
        where r.source_object_kind = 'table' and r.relation is not null and c.missing is not null
        union all
        select 'route ' || r.route_code, case when r.enabled then 'fail' else 'warn' end,
               format('event type %s/%s is not registered or not enabled: no events are made', r.domain, r.type),
               format('tidemark type set %s %s --enabled', r.domain, r.type)
        from route r where not r.registered
        union all
        select 'route ' || r.route_code, 'fail',
               format('column %I of %s is a forbidden key, and domain %s is metadata-only: the events are refused',
                      w.name, r.name, r.domain),
               'Take it out of payload_columns, or see tidemark.forbidden_key.'
        from route r left join key k on k.relation = r.relation
        cross join lateral unnest(r.payload_columns
            || case when r.source_object_kind = 'table' and r.sql_event <> 'truncate' then k.columns end) w (name)
        where r.metadata_only and tidemark.forbidden_key_in(jsonb_build_object(w.name, null)) is not null
        union all
        select 'route ' || r.route_code, 'fail', c.problem || ': the events show them nevertheless',
               'Take them out of payload_columns, or give the type a schema that names them.'
        from tidemark.inbound_route r cross join lateral tidemark.contract_problem(r) c (problem)
        where c.problem is not null
        union all
        select 'table ' || x.name, 'warn', 'it has no primary key: its events have no key and name no row', 'Add one.'
        from (select distinct r.name, r.relation from route r where r.attached and r.sql_event <> 'truncate') x
        where not exists (select from key k where k.relation = x.relation)
        union all
        select 'table ' || x.name, 'warn', 'other tables inherit from it: what is written to them by their own names '
                                           'is not captured', 'Attach these too.'
        from (select distinct r.name, r.relation from route r where r.attached and r.relkind = 'r') x
        where exists (select from pg_inherits i where i.inhparent = x.relation)
        union all
        select 'table ' || x.name, 'warn',
               'it is a partition: what is written by the name of its parent is not captured', 'Attach the parent.'
        from (select distinct r.name from route r where r.attached and r.relispartition) x
        union all
        -- A truncate fires its trigger, if that is enabled always.
        select 'table ' || x.name, case when x.enabled then 'fail' else 'warn' end,
               format('subscription %s writes it: what is replicated makes no events, since statement triggers do not '
                      'fire for it', w.names),
               'Capture it where it is written, or make it a source of safety declared.'
        from (select r.name, r.relation, bool_or(r.enabled) as enabled from route r
              where r.attached and r.sql_event <> 'truncate' group by 1, 2) x
        cross join lateral (
            select string_agg(distinct s.subname, ', ') as names
            from pg_subscription_rel p join pg_subscription s on s.oid = p.srsubid
            where p.srrelid in (select x.relation union all select t.relid from pg_partition_tree(x.relation) t
                                union all select a.relid from pg_partition_ancestors(x.relation) a (relid))) w
        where w.names is not null
        union all
        -- PostgreSQL shows such a row to no trigger for updates; to one for deletes or inserts only if the MERGE itself
        -- has such an action.
        select 'route ' || r.route_code, 'warn',
               format('a MERGE that moves a row of %s to another partition makes no event of its update', r.name),
               'Move rows by UPDATE, or with a DELETE and an INSERT.'
        from route r where r.attached and r.enabled and r.relkind = 'p' and r.sql_event = 'update'
        union all
        select format('trigger %I of %I.%I', a.trigger_name, a.schema_name, a.table_name), 'fail',
               case when not a.as_attached then 'it differs from what attach makes: while its route is on, writers fail'
                    when a.enabled = 'D' then 'it is disabled: changes make no events'
                    else 'it fires only where session_replication_role is replica: other changes make no events' end,
               case when a.as_attached then format('As its owner: tidemark capture attach %I.%I --reason …',
                                                   a.schema_name, a.table_name)
                    else format('tidemark capture detach %I.%I, and attach it again', a.schema_name, a.table_name) end
        from tidemark.capture_attached a where not a.as_attached or a.enabled not in ('O', 'A')
        union all
        select format('trigger %I of %I.%I', a.trigger_name, a.schema_name, a.table_name), 'warn',
               'it has no inbound route: it costs time and does nothing',
               format('tidemark capture detach %I.%I', a.schema_name, a.table_name)
        from tidemark.capture_attached a
        where not exists (
            select from route r where r.source_object_kind = 'table' and r.relation = a.relation
                                  and r.sql_event = a.operation)
        union all
        select 'function tidemark.' || c.object, 'fail', 'changed by hand since it was installed', 'tidemark migrate up'
        from tidemark.code c join pg_proc p on p.pronamespace = 'tidemark'::regnamespace and p.proname = c.object
        where c.object in ('capture_template', 'capture_sql', 'capture_columns', 'capture_fits')
          and c.installed is distinct from md5(pg_get_functiondef(p.oid))
        union all
        select format('function tidemark.%I', s.function_name), 'warn',
               format('differs from what would be made now for %s of %I.%I: captures are slower', s.operation,
                      s.schema_name, s.table_name),
               'select tidemark.capture_refresh()'
        from tidemark.capture_stale s
    )
    select f.object, f.status, f.problem, f.hint from found f order by f.status, f.object, f.problem
$$;
comment on function tidemark.capture_check() is
    'Problems of inbound routes and their triggers, one row each: status fail (changes are lost, writers fail, or '
    'events break the schema of their type) or warn. No rows: no problem. Reads only the catalogs.';
grant execute on function tidemark.capture_check() to tidemark_reader;
