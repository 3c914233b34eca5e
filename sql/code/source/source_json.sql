create or replace function tidemark.source_json(
    definition tidemark.source,
    columns text[] default null,
    as_text boolean default false)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    -- A function takes at most 100 arguments.
    select string_agg('jsonb_build_object(' || x.pairs || ')', ' || ' order by x.chunk)
    from (
        select a.attnum / 50 as chunk, string_agg(format('%L, ' || case
                   when source_json.as_text then 'nullif(format(''%%s'', tidemark_row.%I), case when tidemark_row.%2$I '
                                                 'is null then '''' end)'
                   else 'tidemark_row.%I' end, a.attname, a.attname), ', ' order by a.attnum) as pairs
        from pg_class c
        join pg_namespace n on n.oid = c.relnamespace
        join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        where n.nspname = definition.schema_name and c.relname = definition.table_name
          and (source_json.columns is null or a.attname = any (source_json.columns)) group by 1) x
$$;
comment on function tidemark.source_json(tidemark.source, text[], boolean) is
    'A SQL expression: the row of tidemark.source_row as JSON. columns: only these (null: all). as_text: each value as '
    'its text.';
grant execute on function tidemark.source_json(tidemark.source, text[], boolean) to tidemark_reader, tidemark_executor;
