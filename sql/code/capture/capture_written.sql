create or replace function tidemark.capture_written(relation regclass, operation text, contract text[], policy text)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select s.written
    from tidemark.capture_sql(relation, operation, contract, policy,
        'at as at, head as head, route.id as route, ''inbound route '' || route.route_code || '': '' as place, '
        'route.domain as domain, route.type as type, route.stream as stream, route.unchecked as unchecked, '
        'route.schema as schema, route.metadata_only as metadata_only') s
    where s.missing is null and not s.may_fail
$$;
comment on function tidemark.capture_written(regclass, text, text[], text) is
    'The statement that a function of tidemark.capture_make has for its table, over variables of '
    'tidemark.capture_template. Null: its contract names what the table cannot show, or JSON that may be unreadable; '
    'then the function goes the long way.';
grant execute on function tidemark.capture_written(regclass, text, text[], text) to tidemark_reader;
