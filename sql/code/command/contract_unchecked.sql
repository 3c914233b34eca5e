create or replace function tidemark.contract_unchecked(schema jsonb, pointer text default '')
returns text[]
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    if jsonb_typeof(schema) <> 'object' then
        return '{}';
    end if;
    return array(
        select x.name from (
            select pointer || '/' || k as name from jsonb_object_keys(schema) k
            where k <> all (array['type', 'required', 'properties', 'additionalProperties', 'enum', 'const', 'minimum',
                                  'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'minLength', 'maxLength', 'items',
                                  'minItems', 'maxItems', '$schema', '$id', '$comment', '$defs', 'title',
                                  'description', 'default', 'examples', 'deprecated'])
               or k in ('additionalProperties', 'items') and schema ?| array['patternProperties', 'prefixItems']
            union all
            select unnest(tidemark.contract_unchecked(p.value, pointer || '/properties/' || p.key))
            from jsonb_each(case jsonb_typeof(schema -> 'properties') when 'object' then schema -> 'properties'
                            else '{}' end) p
            union all
            select unnest(tidemark.contract_unchecked(schema -> k, pointer || '/' || k))
            from unnest(array['items', 'additionalProperties']) k where schema ? k) x
        order by 1);
end
$$;
comment on function tidemark.contract_unchecked(jsonb, text) is
    'The keywords of a JSON Schema that tidemark.contract_errors does not check, as JSON pointers. Empty: it checks '
    'the whole schema.';
grant execute on function tidemark.contract_unchecked(jsonb, text) to tidemark_reader;
