create or replace function tidemark.jsonb_add(one jsonb, other jsonb)
returns jsonb
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if one is null or other is null or jsonb_typeof(one) <> 'object' or jsonb_typeof(other) <> 'object' then
        return coalesce(other, one);
    end if;
    return one || (
        select coalesce(jsonb_object_agg(o.key, case
            when jsonb_typeof(o.value) = 'number' and jsonb_typeof(one -> o.key) = 'number'
                then to_jsonb((o.value #>> '{}')::numeric + (one ->> o.key)::numeric) else o.value end), '{}')
        from jsonb_each(other) o);
end
$$;
comment on function tidemark.jsonb_add(jsonb, jsonb) is
    'Merges two objects: numbers that both have are added; for other members the second object''s value counts.';
grant execute on function tidemark.jsonb_add(jsonb, jsonb) to tidemark_executor;
