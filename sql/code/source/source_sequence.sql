-- PL/pgSQL keeps the plan of the query. A function in SQL would plan it at each call.
create or replace function tidemark.source_sequence(relation oid, id_column text)
returns regclass
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select case
            when a.attidentity <> '' then (
                select d.objid from pg_depend d join pg_class c on c.oid = d.objid and c.relkind = 'S'
                where d.classid = 'pg_class'::regclass and d.refclassid = 'pg_class'::regclass
                  and d.refobjid = a.attrelid and d.refobjsubid = a.attnum and d.deptype = 'i')
            when pg_get_expr(f.adbin, f.adrelid) ~ E'^nextval\\(''([^'']|'''')+''::regclass\\)$' then (
                select d.refobjid from pg_depend d join pg_class c on c.oid = d.refobjid and c.relkind = 'S'
                where d.classid = 'pg_attrdef'::regclass and d.objid = f.oid
                  and d.refclassid = 'pg_class'::regclass) end
        from pg_attribute a left join pg_attrdef f on f.adrelid = a.attrelid and f.adnum = a.attnum
        where a.attrelid = source_sequence.relation and a.attname = source_sequence.id_column);
end
$$;
comment on function tidemark.source_sequence(oid, text) is
    'The sequence that numbers a column: by the column''s identity, or by a default that is only nextval. Null: none.';
grant execute on function tidemark.source_sequence(oid, text) to tidemark_reader, tidemark_executor;
