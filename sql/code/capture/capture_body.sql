create or replace function tidemark.capture_body(relation regclass, route tidemark.inbound_route)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    -- The statement for the table, over variables of tidemark.capture_template. Null: the contract names a column that
    -- the table cannot show, or JSON that may be unreadable; the function then uses the general path.
    written constant text := (
        select s.written
        from tidemark.capture_sql(relation, route.sql_event, route.payload_columns, route.idempotency_policy,
            'at as at, head as head, route.id as route, ''inbound route '' || route.route_code || '': '' as place, '
            'route.domain as domain, route.type as type, route.stream as stream, route.unchecked as unchecked, '
            'route.schema as schema, route.metadata_only as metadata_only') s
        where s.missing is null and not s.may_fail);
    schema_name name;
    table_name name;
    own text := '';
begin
    select n.nspname, c.relname into schema_name, table_name
    from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = relation;
    if written is not null then
        own := format($own$
    -- Made by tidemark.capture_make. What follows below is the long way, for when this does not fit: the table is
    -- another than it was, the route is in dry run, …
    if tg_relid = %3$s and tg_table_schema = %1$L and tg_table_name = %2$L and tg_op = %4$L then
        select r.id, r.route_code, r.domain, r.type, r.stream, t.unchecked, t.metadata_only, t.schema,
               r.payload_columns = %5$L and r.idempotency_policy = %6$L and r.domain = %11$L and r.type = %12$L
               and t.type is not null and r.fail_closed and not r.dry_run and %7$s as fits
        into route
        from tidemark.inbound_route r
        left join tidemark.event_type t on t.domain = %11$L and t.type = %12$L and t.enabled
        where r.source_object_kind = 'table' and r.source_schema = %1$L and r.source_table = %2$L
          and r.sql_event = %9$L and r.enabled%8$s;
        if not found then
            return null;
        end if;
        if route.fits then
            %10$s;
            get diagnostics n = row_count;
        end if;
    end if;
$own$,
            schema_name, table_name, relation::oid, upper(route.sql_event), route.payload_columns,
            route.idempotency_policy, case route.sql_event when 'truncate' then 'true'
                else format('tidemark.capture_is_made(%s, %L)', relation::oid,
                            tidemark.capture_fingerprint(relation)) end,
            case route.sql_event when 'truncate' then '' when 'delete' then ' and exists (select from tidemark_old)'
                else ' and exists (select from tidemark_new)' end,
            route.sql_event, written, route.domain, route.type);
    end if;
    -- The settings stand in a comment, so that a function made with other settings is stale.
    return E'\n-- ' || tidemark.capture_settings()
        || replace(tidemark.capture_template(), '{the table''s own statement}', own);
end
$$;
comment on function tidemark.capture_body(regclass, tidemark.inbound_route) is
    'The body of the trigger function of one inbound route: tidemark.capture_template with the table''s own statement, '
    'which PostgreSQL plans once a session.';
grant execute on function tidemark.capture_body(regclass, tidemark.inbound_route) to tidemark_reader;
