create or replace function tidemark.payload_error(payload jsonb, schema jsonb)
returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    name text;
    wanted jsonb;
    kind text;
begin
    if payload is null or jsonb_typeof(payload) <> 'object' then
        return format('payload is %s, not an object', coalesce(jsonb_typeof(payload), 'null'));
    end if;

    if schema ? '$ref' then
        return null;
    elsif schema ? 'type' and not schema -> 'type' @> '"object"' then
        return format('payload is object, and its schema wants %s', schema -> 'type');
    end if;

    if jsonb_typeof(schema -> 'required') = 'array' then
        for name in select jsonb_array_elements_text(schema -> 'required') loop
            if not payload ? name then
                return format('payload has no key "%s", which its schema requires', name);
            end if;
        end loop;
    end if;

    if jsonb_typeof(schema -> 'properties') = 'object' then
        for name, wanted in
            select p.key, p.value -> 'type' from jsonb_each(schema -> 'properties') p
            where jsonb_typeof(p.value) = 'object' and p.value ? 'type' and not p.value ? '$ref' and payload ? p.key
        loop
            kind := jsonb_typeof(payload -> name);
            -- JSON Schema counts 1.0 as an integer.
            if kind = 'number' and (payload ->> name)::numeric = trunc((payload ->> name)::numeric) then
                continue when wanted @> '"integer"' or wanted @> '"number"';
            end if;
            if not wanted @> to_jsonb(kind) then
                return format('payload key "%s" is %s, and its schema wants %s', name, kind, wanted);
            end if;
        end loop;
    end if;

    -- Refuse a forbidden field in a payload of ids, whatever way the payload comes.
    if schema -> 'additionalProperties' = 'false' and not schema ? 'patternProperties' then
        select k.key into name from jsonb_object_keys(payload) k (key)
        where jsonb_typeof(schema -> 'properties') is distinct from 'object' or not schema -> 'properties' ? k.key
        limit 1;
        if found then
            return format('payload has the key "%s", and its schema allows no other than it names', name);
        end if;
    end if;

    return null;
end
$$;
comment on function tidemark.payload_error(jsonb, jsonb) is
    'What part of a payload breaks its JSON Schema, as far as SQL checks it: that the payload is an object, "type", '
    '"required", the "type" of each of "properties", and "additionalProperties": false without "patternProperties"; '
    'nothing beside "$ref". Null: none. tidemark.schema_unchecked names the rest of the schema.';
grant execute on function tidemark.payload_error(jsonb, jsonb) to tidemark_reader;
