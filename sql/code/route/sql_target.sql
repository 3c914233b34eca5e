create or replace function tidemark.sql_target(target_ref text)
returns regprocedure
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    name text[];
begin
    begin
        name := parse_ident(target_ref);
    exception when invalid_parameter_value then
        return null;
    end;
    -- Not to_regprocedure, for which a function in a schema that the caller may not enter is not there: that
    -- is another mistake, and has its own error.
    return (
        select p.oid::regprocedure from pg_proc p join pg_namespace n on n.oid = p.pronamespace
        where cardinality(name) = 2 and n.nspname = name[1] and p.proname = name[2]
          and p.prokind = 'f' and p.proargtypes = array['jsonb'::regtype::oid]::oidvector);
end
$$;
comment on function tidemark.sql_target(text) is
    'The function that an SQL target names: schema.function with one parameter of type jsonb. Null: it does not exist.';
grant execute on function tidemark.sql_target(text) to tidemark_reader, tidemark_executor;
