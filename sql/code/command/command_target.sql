create or replace function tidemark.command_target(
    target_ref text,
    out function oid,
    out takes integer,
    out returns regtype,
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
    select (array_agg(p.oid))[1], (array_agg(p.pronargs))[1], (array_agg(p.prorettype::regtype))[1], count(*)
    into function, takes, returns, forms
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where cardinality(name) = 2 and n.nspname = name[1] and p.proname = name[2] and p.prokind = 'f'
      and not p.proretset and p.provariadic = 0
      and p.pronargs in (1, 2) and p.proargtypes[0] = 'jsonb'::regtype
      and (p.pronargs = 1 or p.proargtypes[1] = 'jsonb'::regtype);
    problem := case
        when cardinality(name) <> 2 then format('"%s" is not schema.function', target_ref)
        when name[1] in ('tidemark', 'pg_catalog', 'information_schema')
            then format('a function of the schema %s cannot be a command', name[1])
        when forms = 0 then format('there is no function %1$s(jsonb) or %1$s(jsonb, jsonb) that returns one value',
                                   target_ref)
        when forms = 2 then format('there are two functions, %1$s(jsonb) and %1$s(jsonb, jsonb): drop one', target_ref)
        when returns not in ('jsonb'::regtype, 'json'::regtype, 'void'::regtype)
            then format('%s returns %s, and must return jsonb, json or void', target_ref, returns)
    end;
end
$$;
comment on function tidemark.command_target(text) is
    'The function that a command names: schema.function taking the payload, or the payload and the context, as jsonb. '
    'takes: how many of them. problem: null, or why it cannot serve.';
grant execute on function tidemark.command_target(text) to tidemark_reader, tidemark_admin, tidemark_executor;
