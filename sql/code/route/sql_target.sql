create or replace function tidemark.sql_target(
    target_ref text,
    out function regprocedure,
    out takes text,
    out problem text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    name text[];
    forms integer;
begin
    begin
        name := parse_ident(target_ref);
    exception when invalid_parameter_value then
        name := '{}';
    end;
    -- Not to_regprocedure, for which a function in a schema that the caller may not enter is not there: that
    -- is another mistake, and has its own error.
    select (array_agg(f.oid order by f.takes desc))[1], (array_agg(f.takes order by f.takes desc))[1], count(*)
    into function, takes, forms
    from (
        select p.oid, case p.proargtypes[0] when 'jsonb'::regtype then 'event' else 'batch' end as takes
        from pg_proc p join pg_namespace n on n.oid = p.pronamespace
        where cardinality(name) = 2 and n.nspname = name[1] and p.proname = name[2] and p.prokind = 'f'
          and p.pronargs = 1 and p.provariadic = 0
          and p.proargtypes[0] in ('jsonb'::regtype, 'tidemark.outbox[]'::regtype)) f;
    problem := case forms
        when 0 then format('there is no function %s(jsonb)', target_ref)
        when 2 then format('there are two functions, %1$s(jsonb) and %1$s(tidemark.outbox[]): drop one', target_ref)
    end;
end
$$;
comment on function tidemark.sql_target(text) is
    'The function that an SQL target names: schema.function with one parameter. takes: event (of type jsonb, a call an '
    'event) or batch (of type tidemark.outbox[], a call for many events). problem: there is none, or one of each; then '
    'the one that takes an event is called, as before the other one was created.';
grant execute on function tidemark.sql_target(text) to tidemark_reader, tidemark_executor, tidemark_admin;
