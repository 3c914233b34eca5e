create or replace function tidemark.capture_body(relation regclass, route tidemark.inbound_route)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    unchecked constant text := coalesce((select t.unchecked::text from tidemark.event_type t
                                         where t.domain = route.domain and t.type = route.type), 'false');
    -- The statement for the table, over constants and variables of tidemark.capture_template. Null: the contract names
    -- a column that the table cannot show, or JSON that may be unreadable; the function then uses the general path.
    written constant text := (
        select s.written
        from tidemark.capture_sql(relation, route.sql_event, route.payload_columns, route.idempotency_policy,
            format('at as at, head as head, %s as route, %L::text as place, %L::text as domain, %L::text as type, '
                   '%L::text as stream, %s as unchecked, schema as schema, metadata_only as metadata_only',
                   route.id, format('inbound route %s: ', route.route_code), route.domain, route.type, route.stream,
                   unchecked)) s
        where s.missing is null and not s.may_fail);
    schema_name name;
    table_name name;
    parted boolean;
    own text := '';
begin
    -- A row that an update moves to another partition has no new version if a trigger refuses it there.
    select n.nspname, c.relname, c.relkind = 'p' and route.sql_event = 'update' into schema_name, table_name, parted
    from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = relation;
    if written is not null then
        -- All that the function was made for stands in it. What may have changed since is asked once a statement, by
        -- one that reads the transition table: PostgreSQL plans that again when the table changes.
        own := format($own$
    -- Made by tidemark.capture_make. What follows below is the long way, for when this does not fit: the table is
    -- another than it was, the route is in dry run, …
    if tg_relid = %3$s and tg_table_schema = %1$L and tg_table_name = %2$L and tg_op = %4$L then
        select r.enabled%8$s,
               r.route_code = %13$L and r.payload_columns = %5$L and r.idempotency_policy = %6$L and r.domain = %11$L
               and r.type = %12$L and r.stream is not distinct from %14$L and t.type is not null
               and t.unchecked = %15$s and r.fail_closed and not r.dry_run and %7$s,
               (select s.value = 'true' from tidemark.setting s where s.key = 'notify.listeners_enabled'),
               t.schema, t.metadata_only
        into due, fits, listeners, schema, metadata_only
        from tidemark.inbound_route r
        left join tidemark.event_type t on t.domain = %11$L and t.type = %12$L and t.enabled
        where r.id = %16$s and r.source_object_kind = 'table' and r.source_schema = %1$L and r.source_table = %2$L
          and r.sql_event = %9$L;
        if not due then
            return null;
        elsif fits then
            %10$s;
            get diagnostics n = row_count;
        end if;
    end if;
$own$,
            schema_name, table_name, relation::oid, upper(route.sql_event), route.payload_columns,
            route.idempotency_policy, case route.sql_event when 'truncate' then 'true'
                else format('tidemark.capture_is_made(%s, %L)', relation::oid,
                            tidemark.capture_fingerprint(relation)) end
                || case when parted
                        then ' and (select count(*) from tidemark_new) = (select count(*) from tidemark_old)'
                        else '' end,
            case when route.sql_event = 'truncate' then ''
                when route.sql_event = 'delete' or parted then ' and exists (select from tidemark_old)'
                else ' and exists (select from tidemark_new)' end,
            route.sql_event, written, route.domain, route.type, route.route_code, route.stream, unchecked, route.id);
    end if;
    -- The settings stand in a comment, so that a function made with other settings is stale.
    return E'\n-- ' || tidemark.capture_settings()
        || replace(replace(replace(tidemark.capture_template(), '{the route''s domain}', quote_literal(route.domain)),
                           '{the route''s id}', route.id::text),
                   '{the table''s own statement}', own);
end
$$;
comment on function tidemark.capture_body(regclass, tidemark.inbound_route) is
    'The body of the trigger function of one inbound route: tidemark.capture_template with the table''s own statement, '
    'which PostgreSQL plans once a session.';
grant execute on function tidemark.capture_body(regclass, tidemark.inbound_route) to tidemark_reader;
