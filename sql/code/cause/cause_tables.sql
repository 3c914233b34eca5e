create or replace function tidemark.cause_tables()
returns setof tidemark.trouble
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return query
    with missed as materialized (
        select m.name, m.since, m.inserts, m.deletes,
               format('at least %s inserts and %s deletes since %s have no event', m.inserts, m.deletes,
                      date_trunc('second', m.since)) as found
        from tidemark.capture_missed() m
    ), deaf as materialized (
        select d.* from tidemark.capture_deaf d
    )
    select 'capture_disabled', d.name, 'bad', coalesce(g.since, m.since, c.at),
           format('no %s of %s becomes an event: its trigger %s; %s', replace(d.operations, ', ', ' or '), d.name,
                  coalesce(array_to_string(d.triggers, ', ') || ' is disabled', 'is missing or altered'),
                  case when g.counted + g.others > 0
                            then format('at least %s inserts and %s deletes since %s have no event', g.counted,
                                        g.others, date_trunc('second', g.since))
                       else coalesce(m.found, 'how many rows have no event is known when they are emitted') end),
           null::bigint, array['finding capture_gap ' || d.name],
           array[format('select tidemark.capture_attach(%L, ''its trigger was off'');', d.name),
                 format('select g.name, e.* from tidemark.capture_gap g cross join lateral '
                        'tidemark.capture_gap_emit(g.id, ''its trigger was off'') e '
                        'where g.name = %L and g.resolved_at is null;', d.name)],
           array[format('tidemark capture attach %s --reason ''its trigger was off''', tidemark.shell_word(d.name)),
                 format('tidemark capture reconcile --table %s --emit --reason ''its trigger was off''',
                        tidemark.shell_word(d.name))]
    from deaf d
    left join tidemark.capture_gap g on g.name = d.name and g.resolved_at is null
    left join tidemark.capture_checkpoint c on c.name = d.name and c.relation = d.relation
    left join missed m on m.name = d.name
    union all
    select 'capture_gap', m.name, 'bad', m.since,
           m.found || ', although its triggers are enabled: a session has session_replication_role = replica, or a '
               'trigger was off for a while',
           null, array['finding capture_gap ' || m.name],
           array['select tidemark.maintain();'] || tidemark.cause_commands(k.sql, m.name, false),
           array['tidemark maintain'] || tidemark.cause_commands(k.cli, m.name, true)
    from missed m join tidemark.cause_kind k on k.cause = 'capture_gap'
    where not exists (select from deaf d where d.name = m.name)
    union all
    select 'capture_broken', r.route_code, 'bad', null,
           format('%I.%I has no column %s, which inbound route %s shows: %s', r.source_schema, r.source_table,
                  x.missing, r.route_code,
                  case when r.fail_closed then format('each %s of it by the application fails now', r.sql_event)
                       else format('no %s of it becomes an event', r.sql_event) end),
           null, array['finding capture_unwritten ' || r.route_code],
           array[format('select tidemark.inbound_route_set(%L, %L, %L);', r.route_code,
                        jsonb_build_object('payload_columns', x.left_), x.missing || ' is gone')],
           case when cardinality(x.left_) > 0 then array[
               format('tidemark capture route set %s --payload-columns %s --reason %s',
                      tidemark.shell_word(r.route_code), tidemark.shell_word(array_to_string(x.left_, ',')),
                      tidemark.shell_word(x.missing || ' is gone'))] else '{}' end
    from tidemark.inbound_route r
    join pg_namespace n on n.nspname = r.source_schema
    join pg_class c on c.relnamespace = n.oid and c.relname = r.source_table and c.relkind in ('r', 'p')
    cross join lateral (
        select string_agg(quote_ident(w.name), ', ' order by w.ord) filter (where a.attname is null) as missing,
               coalesce(array_agg(w.name order by w.ord) filter (where a.attname is not null), '{}') as left_
        from unnest(r.payload_columns) with ordinality w (name, ord)
        left join pg_attribute a on a.attrelid = c.oid and a.attname = w.name and a.attnum > 0
            and not a.attisdropped and a.attgenerated <> 'v') x
    -- The columns that tidemark.capture_columns has, which costs a hundred times as much.
    where r.source_object_kind = 'table' and r.enabled and not r.dry_run
      and exists (select from unnest(r.payload_columns) w (name)
                  where not exists (select from pg_attribute a
                                    where a.attrelid = c.oid and a.attname = w.name and a.attnum > 0
                                      and not a.attisdropped and a.attgenerated <> 'v'));

    -- Rarely so; to read the triggers costs more than all that is above.
    if not exists (select from (select distinct r.source_schema, r.source_table from tidemark.inbound_route r
                                where r.source_object_kind = 'table' and r.enabled and not r.dry_run) r
                   where not exists (
                       select from pg_class c join pg_namespace n on n.oid = c.relnamespace
                       where n.nspname = r.source_schema and c.relname = r.source_table
                         and c.relkind in ('r', 'p'))) then
        return;
    end if;
    return query
    select 'capture_broken', m.route_code, 'bad', null::timestamptz,
           format('there is no table %s, which inbound route %s captures: its table is now %s%s, and no %s of it '
                  'becomes an event', m.name, m.route_code, o.now_,
                  case when o.taken then format(', and %s is another object', m.name) end, m.sql_event),
           null::bigint, array['finding capture_unwritten ' || m.route_code],
           case when o.taken then array[format(
               'select tidemark.inbound_route_set(%L, %L, %L);', m.route_code,
               jsonb_build_object('source_schema', m.schema_name, 'source_table', m.table_name), 'it was renamed')]
           else array_remove(array[
               case when m.schema_name <> m.source_schema
                    then format('alter table %s set schema %I;', o.now_, m.source_schema) end,
               case when m.table_name <> m.source_table
                    then format('alter table %I.%I rename to %I;', m.source_schema, m.table_name, m.source_table) end],
               null) end,
           case when o.taken then array[format(
               'tidemark capture route set %s --schema %s --table %s --reason ''it was renamed''',
               tidemark.shell_word(m.route_code), tidemark.shell_word(m.schema_name),
               tidemark.shell_word(m.table_name))] else '{}' end
    from (select distinct on (m.route_code) m.* from tidemark.capture_moved m order by m.route_code, m.relation) m
    cross join lateral (
        select format('%I.%I', m.schema_name, m.table_name) as now_,
               exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace
                       where n.nspname = m.source_schema and c.relname = m.source_table) as taken) o;
end
$$;
comment on function tidemark.cause_tables() is
    'The part of tidemark.cause about captured tables: capture_disabled (a trigger does not fire: changes make no '
    'events), capture_gap (changes have no event although the triggers are enabled), capture_broken (a column of the '
    'contract is gone: writes of the application fail; or the table has another name now: changes make no events).';
grant execute on function tidemark.cause_tables() to tidemark_reader, tidemark_executor;
