create or replace function tidemark.source_json(definition tidemark.source)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    -- A function takes 100 arguments at most.
    select string_agg('jsonb_build_object(' || x.pairs || ')', ' || ' order by x.chunk)
    from (
        select a.attnum / 50 as chunk, string_agg(format('%L, tidemark_row.%I', a.attname, a.attname), ', ' order by a.attnum) as pairs
        from pg_class c
        join pg_namespace n on n.oid = c.relnamespace
        join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        where n.nspname = definition.schema_name and c.relname = definition.table_name group by 1) x
$$;
comment on function tidemark.source_json(tidemark.source) is 'The row of tidemark.source_row as JSON: an expression.';
revoke all on function tidemark.source_json(tidemark.source) from public;
grant execute on function tidemark.source_json(tidemark.source) to tidemark_reader, tidemark_executor;
