-- public
create or replace function tidemark.type_set(
    domain text, type text, changes jsonb default '{}', reason text default null)
returns setof tidemark.registered_type
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    row_ tidemark.event_type;
    unchecked constant text[] := tidemark.schema_unchecked(changes -> 'schema');
begin
    perform set_config('tidemark.reason', coalesce(type_set.reason, ''), true);
    perform tidemark.changes_check('type', type_set.changes, 'tidemark.event_type',
                                   array['domain', 'type', 'metadata_only', 'restricted', 'unchecked',
                                         'schema_digest']);
    insert into tidemark.domain (domain, restricted) values (type_set.domain, type_set.domain = 'system')
    on conflict do nothing;
    insert into tidemark.event_type (domain, type) values (type_set.domain, type_set.type) on conflict do nothing;
    row_ := (select jsonb_populate_record(t, changes) from tidemark.event_type t
    where t.domain = type_set.domain and t.type = type_set.type for update);
    return query
    update tidemark.event_type t
    set version = row_.version, schema = row_.schema, enabled = row_.enabled, description = row_.description
    where t.domain = type_set.domain and t.type = type_set.type
    returning t.domain, t.type, t.version, t.schema, t.enabled, t.description, t.metadata_only, t.restricted,
        tidemark.schema_unchecked(t.schema);
    if cardinality(unchecked) > 0 then
        raise notice 'SQL does not check these keywords of the schema of %/%: %', type_set.domain, type_set.type,
              array_to_string(unchecked, ', ')
            using hint = 'Go programs and the command check the whole schema; emits from SQL and captured changes '
                'are not held to these keywords.';
    end if;
end
$$;
comment on function tidemark.type_set(text, text, jsonb, text) is
    'Registers an event type, and its domain where that is new, or changes the named columns of a type. Returns the '
    'row, with the keywords of its schema that SQL does not check in payloads (tidemark.schema_unchecked); a notice '
    'names them too. Raises TM005 for an unknown column, or a schema that is no JSON Schema.';
grant execute on function tidemark.type_set(text, text, jsonb, text) to tidemark_admin;
