-- The table's owner may alter a column, its type and the type's casts at any time. So each expression here is safe for
-- any type that the column may have by then: a built-in type is asserted (tidemark.as_is), a domain is checked by name
-- before it is reduced to its base type, and any other type is written by its output function, which only a superuser
-- can make.
create or replace function tidemark.source_row(definition tidemark.source, whole text default null)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    columns text;
begin
    select string_agg(format('%s as %I', case
               when t.typtype <> 'd' and t.oid < 16384
                   then format('tidemark.as_is(tidemark_row.%I, null::%s)', a.attname, format_type(t.oid, null))
               when t.typtype = 'd' and b.typtype <> 'd' and b.oid < 16384
                   then format('case when pg_typeof(tidemark_row.%1$I) = %2$s::regtype then tidemark_row.%1$I::%3$s '
                               'else %4$s::%3$s end',
                               a.attname, t.oid, format('pg_catalog.%I', b.typname),
                               o.written) -- Plain char and bit have length 1.
               when t.typsubscript = 'array_subscript_handler'::regproc then o.written || '::text[]'
               else o.written end, a.attname), ', ' order by a.attnum)
    into columns
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    join pg_type t on t.oid = a.atttypid
    left join pg_type b on b.oid = t.typbasetype
    cross join lateral format('nullif(format(''%%s'', tidemark_row.%1$I), case when tidemark_row.%1$I is null then '
                              ''''' end)', a.attname) o (written)
    where n.nspname = definition.schema_name and c.relname = definition.table_name;
    return format('(select tidemark_row.xmin as xmin, %s%s from %I.%I tidemark_row) tidemark_row',
                  whole || ' as tidemark_whole, ', coalesce(columns, '*'), definition.schema_name,
                  definition.table_name);
end
$$;
comment on function tidemark.source_row(tidemark.source, text) is
    'The table of a source, for the FROM of a statement, under the name tidemark_row, free of its owner''s code: its '
    'columns have built-in types (a domain becomes its base type, an array of another type text[], any other type '
    'text), and xmin. whole: an expression over the table''s own columns, which the result shows as tidemark_whole.';
grant execute on function tidemark.source_row(tidemark.source, text) to tidemark_reader, tidemark_executor;
