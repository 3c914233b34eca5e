create or replace function tidemark.source_fence(definition tidemark.source)
returns regclass
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if definition.safety = 'capture' then
        return 'tidemark.outbox'::regclass;
    end if;
    -- No regclass cast: the log's owner may not use the schema.
    return (select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
            where n.nspname = definition.schema_name and c.relname = definition.table_name and c.relkind in ('r', 'p'));
end
$$;
comment on function tidemark.source_fence(tidemark.source) is
    'The table whose writers can keep a number of the source open: the source''s own table; for the safety capture the '
    'log.';
grant execute on function tidemark.source_fence(tidemark.source) to tidemark_reader, tidemark_executor;
