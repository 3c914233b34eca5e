-- public
-- The counterpart of tidemark.payload_error: what that does not look at. A name here that is none of JSON Schema's is
-- an annotation that no checker looks at, or a typing error that is worth being seen.
create or replace function tidemark.schema_unchecked(schema jsonb)
returns text[]
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
    with part (place, body, checked) as (
        select '', schema, array['type', 'required', 'properties']
        union all
        select '/properties/' || replace(replace(p.key, '~', '~0'), '/', '~1'), p.value, array['type']
        from jsonb_each(case when not schema ? '$ref' and jsonb_typeof(schema -> 'properties') = 'object'
                                  then schema -> 'properties'
                        else '{}' end) p
    )
    select array(
        select p.place || k.name
        from part p
        cross join lateral (
            select '/' || replace(replace(o.name, '~', '~0'), '/', '~1')
            from jsonb_object_keys(case jsonb_typeof(p.body) when 'object' then p.body else '{}' end) o (name)
            -- Drafts up to 7 ignore what stands beside $ref, later ones do not: SQL checks none of it.
            where (o.name <> all (p.checked) or p.body ? '$ref')
              and not (o.name = 'additionalProperties' and p.place = '' and p.body -> 'additionalProperties' = 'false'
                       and not p.body ? 'patternProperties' and not p.body ? '$ref')
              and o.name <> all (array['$schema', '$id', 'id', '$anchor', '$dynamicAnchor', '$recursiveAnchor',
                                       '$vocabulary', '$comment', '$defs', 'definitions', 'title', 'description',
                                       'default', 'examples', 'deprecated', 'readOnly', 'writeOnly', 'contentEncoding',
                                       'contentMediaType', 'contentSchema'])
            union all
            select '' where p.body = 'false'
        ) k (name)
        order by 1)
$$;
comment on function tidemark.schema_unchecked(jsonb) is
    'The keywords of a JSON Schema that SQL does not check in payloads, as JSON pointers. SQL checks "type", '
    '"required", the "type" of each of "properties" and "additionalProperties": false (tidemark.payload_error); Go '
    'programs and the command check all keywords. Empty: SQL checks the whole schema.';
grant execute on function tidemark.schema_unchecked(jsonb) to tidemark_reader;
