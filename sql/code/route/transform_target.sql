create or replace function tidemark.transform_target(transform text, out function regprocedure, out problem text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    name text[];
    called record;
begin
    begin
        name := parse_ident(transform);
    exception when invalid_parameter_value then
        name := '{}';
    end;
    if cardinality(name) <> 2 then
        problem := format('transform "%s" must be SCHEMA.FUNCTION, without arguments', left(transform, 200));
        return;
    end if;
    -- Not to_regprocedure: see tidemark.sql_target.
    select p.oid, p.prorettype, p.proretset into called
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where n.nspname = name[1] and p.proname = name[2] and p.prokind = 'f' and p.pronargs = 1 and p.provariadic = 0
      and p.proargtypes[0] = 'jsonb'::regtype;
    if called is null then
        problem := format('there is no function %s(jsonb)', transform);
    elsif called.proretset or called.prorettype <> 'jsonb'::regtype then
        problem := format('the function %s(jsonb) returns %s%s, not jsonb', transform,
                          case when called.proretset then 'a set of ' else '' end, called.prorettype::regtype);
    else
        function := called.oid;
    end if;
end
$$;
comment on function tidemark.transform_target(text) is
    'The function that a route''s transform names: schema.function, taking one jsonb and returning jsonb. problem: why '
    'there is none.';
grant execute on function tidemark.transform_target(text) to tidemark_reader, tidemark_executor, tidemark_admin;
