-- The counterpart of tidemark.contract_unchecked. Not tidemark.payload_error, which runs in each emit, names the first
-- error only, and is kept cheap. A keyword with a value that it cannot have is left to the daemon: a schema that raised
-- would stop the commands of all services.
create or replace function tidemark.contract_errors(document jsonb, schema jsonb, pointer text default '')
returns setof text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    kind constant text := jsonb_typeof(document);
    place constant text := case pointer when '' then '/' else pointer end;
    number constant numeric := case when jsonb_typeof(document) = 'number' then (document #>> '{}')::numeric end;
    size constant integer := case jsonb_typeof(document) when 'string' then length(document #>> '{}')
                                  when 'array' then jsonb_array_length(document) end;
    whole constant jsonb := '{"type": "integer"}';
    limits constant text[] := array['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'minLength',
                                    'maxLength', 'minItems', 'maxItems'];
    rule text;
    wanted jsonb;
    closed constant boolean := jsonb_typeof(document) = 'object' and schema -> 'additionalProperties' is not null
                               and not schema ? 'patternProperties';
begin
    if schema = 'false' then
        return next place || ': must not be here';
    end if;
    if jsonb_typeof(schema) <> 'object' then
        return;
    end if;
    wanted := schema -> 'type';
    if wanted is not null and not (wanted @> to_jsonb(kind)
        or kind = 'number' and number = trunc(number) and wanted @> '"integer"') then
        return next format('%s: type: found %s, wanted %s', place, kind, wanted);
        return;
    end if;
    if jsonb_typeof(schema -> 'enum') = 'array' then
        if not exists (select from jsonb_array_elements(schema -> 'enum') e where e = document) then
            return next format('%s: enum: wanted one of %s', place, left((schema -> 'enum')::text, 200));
        end if;
    end if;
    if schema ? 'const' and schema -> 'const' <> document then
        return next format('%s: const: wanted %s', place, left((schema -> 'const')::text, 200));
    end if;
    -- Of an object or a boolean no number tells anything.
    if coalesce(number, size) is not null and schema ?| limits then
        -- Not a query of the schema's members, which would cost ten times as much.
        foreach rule in array limits loop
            wanted := schema -> rule;
            continue when wanted is null or jsonb_typeof(wanted) <> 'number';
            if (case rule
                   when 'minimum' then number < wanted::numeric
                   when 'maximum' then number > wanted::numeric
                   when 'exclusiveMinimum' then number <= wanted::numeric
                   when 'exclusiveMaximum' then number >= wanted::numeric
                   when 'minLength' then kind = 'string' and size < wanted::numeric
                   when 'maxLength' then kind = 'string' and size > wanted::numeric
                   when 'minItems' then kind = 'array' and size < wanted::numeric
                   when 'maxItems' then kind = 'array' and size > wanted::numeric
                end) then
                return next format('%s: %s: wanted %s%s', place, rule, wanted, ', found ' || size);
                if rule = 'maxItems' then
                    return; -- its items are as many as the producer likes
                end if;
            end if;
        end loop;
    end if;
    if kind = 'object' then
        if jsonb_typeof(schema -> 'required') = 'array' then
            return query
            select format('%s/%s: required, and missing', pointer, r)
            from jsonb_array_elements_text(schema -> 'required') r
            where not document ? r;
        end if;
        if schema ? 'properties' or closed then
            return query
            select e.what from jsonb_each(document) m
            cross join lateral (select case when schema -> 'properties' ? m.key then schema -> 'properties' -> m.key
                                            else schema -> 'additionalProperties' end) s (part)
            cross join lateral tidemark.contract_errors(m.value, s.part,
                left(pointer || '/' || replace(replace(left(m.key, 200), '~', '~0'), '/', '~1'), 200)) e (what)
            where (schema -> 'properties' ? m.key or closed and schema -> 'additionalProperties' <> 'false')
              -- The short way for the commonest schemas of a member: a call costs as much as 50 of these.
              and s.part <> jsonb_build_object('type', jsonb_typeof(m.value))
              and not (s.part = whole and jsonb_typeof(m.value) = 'number' and scale(trim_scale(m.value::numeric)) = 0);
        end if;
        if closed and schema -> 'additionalProperties' = 'false' then
            return query
            select format('%s/%s: additionalProperties: the schema names no such member', pointer, left(m, 100))
            from jsonb_object_keys(document) m
            where not coalesce(schema -> 'properties', '{}') ? m;
        end if;
    elsif kind = 'array' and schema ? 'items' and not schema ? 'prefixItems' then
        return query
        select e.what from jsonb_array_elements(document) with ordinality a (item, i)
        cross join lateral tidemark.contract_errors(a.item, schema -> 'items',
            left(pointer || '/' || (a.i - 1), 200)) e (what)
        -- The short way, as above.
        where schema -> 'items' <> jsonb_build_object('type', jsonb_typeof(a.item))
          and not (schema -> 'items' = whole and jsonb_typeof(a.item) = 'number'
                   and scale(trim_scale(a.item::numeric)) = 0);
    end if;
end
$$;
comment on function tidemark.contract_errors(jsonb, jsonb, text) is
    'Where a document breaks its JSON Schema, as far as SQL checks it: a line for each place, with its JSON pointer '
    'and the rule, without values of the document. tidemark.contract_unchecked names what SQL does not check.';
grant execute on function tidemark.contract_errors(jsonb, jsonb, text) to tidemark_reader, tidemark_executor;
