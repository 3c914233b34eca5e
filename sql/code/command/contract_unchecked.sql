-- Also a keyword whose value JSON Schema does not know there: SQL takes no notice of it, and only a daemon finds that
-- the schema does not compile.
create or replace function tidemark.contract_unchecked(schema jsonb, pointer text default '')
returns text[]
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    types constant jsonb := '["object", "array", "string", "number", "integer", "boolean", "null"]';
begin
    if jsonb_typeof(schema) = 'boolean' then
        return '{}';
    elsif jsonb_typeof(schema) <> 'object' then
        return array[coalesce(nullif(pointer, ''), '/')];
    end if;
    return array(
        select distinct x.name from (
            select pointer || '/' || m.key as name
            from jsonb_each(schema) m
            cross join lateral (select jsonb_typeof(m.value)) k (kind)
            cross join lateral (
                select count(*), count(distinct e.one), coalesce(bool_and(jsonb_typeof(e.one) = 'string'), true)
                from jsonb_array_elements(case k.kind when 'array' then m.value else '[]' end) e (one)
            ) a (many, different, texts)
            where case
                when m.key in ('const', 'default') then false
                when m.key = 'type'
                    then not types @> m.value or k.kind = 'array' and (a.many = 0 or a.many > a.different)
                when m.key = 'required' then k.kind <> 'array' or not a.texts or a.many > a.different
                when m.key in ('enum', 'examples') then k.kind <> 'array'
                when m.key in ('properties', '$defs') then k.kind <> 'object'
                when m.key in ('additionalProperties', 'items')
                    then schema ?| array['patternProperties', 'prefixItems']
                when m.key in ('minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum') then k.kind <> 'number'
                when m.key in ('minLength', 'maxLength', 'minItems', 'maxItems') then m.value::text !~ '^[0-9]{1,9}$'
                when m.key in ('$comment', 'title', 'description') then k.kind <> 'string'
                when m.key = 'deprecated' then k.kind <> 'boolean'
                when m.key = '$schema' then m.value <> '"https://json-schema.org/draft/2020-12/schema"'
                -- Below the root it is another schema's name.
                when m.key = '$id' then pointer <> ''
                    or m.value::text !~ '^"https?://[[:alnum:]_.-]+/[[:alnum:]_./-]*"$'
                else true end
            union all
            select unnest(tidemark.contract_unchecked(p.value, pointer || '/' || k || '/' || p.key))
            from unnest(array['properties', '$defs']) k
            cross join lateral jsonb_each(case jsonb_typeof(schema -> k) when 'object' then schema -> k
                                          else '{}' end) p
            union all
            select unnest(tidemark.contract_unchecked(schema -> k, pointer || '/' || k))
            from unnest(array['items', 'additionalProperties']) k where schema ? k) x
        order by 1);
end
$$;
comment on function tidemark.contract_unchecked(jsonb, text) is
    'The keywords of a JSON Schema that tidemark.contract_errors does not check, as JSON pointers, and what can be no '
    'schema or no value of its keyword. Empty: it checks the whole schema, which compiles.';
grant execute on function tidemark.contract_unchecked(jsonb, text) to tidemark_reader;
