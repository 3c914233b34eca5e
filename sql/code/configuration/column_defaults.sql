create or replace function tidemark.column_defaults(relation regclass)
returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
set intervalstyle = 'postgres'
as $$
declare
    defaults text;
begin
    select string_agg(format('%L, %s', a.attname, coalesce(pg_get_expr(d.adbin, d.adrelid), 'null')), ', ')
    into defaults
    from pg_attribute a join pg_class c on c.oid = a.attrelid
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where a.attrelid = relation and c.relnamespace = 'tidemark'::regnamespace and a.attnum > 0 and not a.attisdropped
      and a.attidentity = '' and a.attgenerated = '' and (d.adbin is not null or not a.attnotnull);
    execute format('select jsonb_build_object(%s)', defaults) into defaults;
    return defaults::jsonb;
end
$$;
comment on function tidemark.column_defaults(regclass) is
    'The columns of a table of Tidemark that may be left out of an insert, with what they are then.';
grant execute on function tidemark.column_defaults(regclass) to tidemark_reader;
