create or replace function tidemark.schema_problem(schema jsonb)
returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    types constant jsonb := '["object", "array", "string", "number", "integer", "boolean", "null"]';
    problem text;
begin
    if schema ? 'required' and jsonb_typeof(schema -> 'required') <> 'array' then
        return '/required is not an array';
    elsif jsonb_path_exists(schema, '$.required[*] ? (@.type() != "string")') then
        return '/required has an element that is not a string';
    elsif schema ? 'properties' and jsonb_typeof(schema -> 'properties') <> 'object' then
        return '/properties is not an object';
    end if;

    select p.place || ' is not a schema' into problem
    from (select '/properties/' || e.key as place, e.value as body
          from jsonb_each(coalesce(schema -> 'properties', '{}')) e) p
    where jsonb_typeof(p.body) not in ('object', 'boolean')
    order by 1 limit 1;
    if problem is not null then
        return problem;
    end if;

    select format('%s/type is %s, and must be one or more of %s', p.place, p.wanted, types) into problem
    from (
        select '' as place, schema -> 'type' as wanted
        union all
        select '/properties/' || e.key, e.value -> 'type' from jsonb_each(coalesce(schema -> 'properties', '{}')) e
    ) p
    where p.wanted is not null
      and (jsonb_typeof(p.wanted) not in ('string', 'array') or not types @> p.wanted or p.wanted = '[]')
    order by 1 limit 1;
    if problem is not null then
        return problem;
    end if;

    -- Go programs and the command check patterns by RE2, which has no lookaround and no back references: they would
    -- refuse each event of the type. An escaped bracket opens nothing.
    select format('the pattern %s has a lookaround or a back-reference, which not every checker supports', e.expression)
    into problem
    from (
        select p #>> '{}' as expression from jsonb_path_query(schema, 'lax $.**.pattern ? (@.type() == "string")') p
        union all
        select k from jsonb_path_query(schema, 'lax $.**.patternProperties ? (@.type() == "object")') p,
            jsonb_object_keys(p) k
    ) e
    where regexp_replace(e.expression, E'\\\\[^1-9k]', '', 'g') ~ E'\\(\\?(<?[=!]|>)|\\\\[1-9k]'
    order by 1 limit 1;
    return problem;
end
$$;
comment on function tidemark.schema_problem(jsonb) is
    'Why a document cannot be a JSON Schema, as far as SQL looks at schemas: "type", "required", "properties", and '
    'patterns that Go programs cannot check. Null: SQL finds no problem.';
grant execute on function tidemark.schema_problem(jsonb) to tidemark_reader;
