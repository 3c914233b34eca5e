create or replace function tidemark.capture_table(route tidemark.inbound_route)
returns regclass
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    -- No to_regclass: the log's owner may not use the schema.
    select coalesce(
        (select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
         where n.nspname = (capture_table.route).source_schema and c.relname = (capture_table.route).source_table
           and c.relkind in ('r', 'p')),
        (select min(a.relation) from tidemark.capture_attached a
         where a.function_name = 'capture_' || (capture_table.route).id))::regclass
$$;
comment on function tidemark.capture_table(tidemark.inbound_route) is
    'The table that the trigger function of an inbound route is made for: the one that the route names, or else one '
    'whose trigger calls the function, as that of a table with another name now. Null: there is none.';
grant execute on function tidemark.capture_table(tidemark.inbound_route) to tidemark_reader;
