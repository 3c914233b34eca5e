-- public
-- Not a security definer: the doctor looks at the table with the rights of the caller.
create or replace function tidemark.source_set(source text, changes jsonb default '{}', reason text default null)
returns setof tidemark.source
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    was constant tidemark.source := (select s from tidemark.source s where s.source = source_set.source);
    definition tidemark.source := was;
    name text[];
    shape record;
    bad record;
begin
    perform tidemark.changes_check('source', source_set.changes - 'table', 'tidemark.source',
        array['source', 'id_type', 'id_collate_c', 'timestamp_type', 'created_at', 'created_by']);
    if definition.source is null then
        if not changes ?& array['table', 'id_column', 'safety']
            and not changes ?& array['schema_name', 'table_name', 'id_column', 'safety'] then
            raise exception using errcode = 'TM005',
                message = format('source %s is new and needs table, id_column and safety', source_set.source),
                hint = 'select tidemark.source_set(''births'', ''{"table": "public.birth_registry", "id_column": "id", '
                    '"timestamp_column": "born_at", "safety": "clock"}'');';
        end if;
        definition := jsonb_populate_record(null::tidemark.source, jsonb_build_object(
            'source', source_set.source, 'id_collate_c', false, 'key_columns', '{}'::text[], 'group_key', '{}'::text[],
            'margin', '1 second', 'sweep_every', '1 minute', 'bucket', '1 hour', 'description', '',
            'created_at', clock_timestamp(), 'created_by', tidemark.login()));
    end if;
    definition := jsonb_populate_record(definition, changes - 'table');
    if changes ? 'table' then
        begin
            name := parse_ident(changes ->> 'table');
        exception when invalid_parameter_value then
            name := '{}';
        end;
        if cardinality(name) <> 2 then
            raise exception using errcode = 'TM005',
                message = format('table is %s, and must be schema.table', changes -> 'table'),
                hint = 'Quote what is in capitals: "Shop"."Orders".';
        end if;
        definition.schema_name := name[1];
        definition.table_name := name[2];
    end if;
    shape := tidemark.source_shape(definition);
    if shape.problem is not null then
        raise exception using errcode = 'TM005', message = format('source %s: %s', source_set.source, shape.problem);
    end if;
    definition.id_type := shape.id_type;
    definition.id_collate_c := shape.id_collate_c;
    definition.timestamp_type := shape.timestamp_type;
    select c."check", c.detail, c.hint into bad from tidemark.source_check(definition) c
    where c.status = 'fail' limit 1;
    if found then
        raise exception using errcode = 'TM005', message = format('source %s: %s', source_set.source, bad.detail),
            hint = bad.hint;
    end if;
    return query select * from tidemark.source_write(was, definition, source_set.reason);
end
$$;
comment on function tidemark.source_set(text, jsonb, text) is
    'Makes a table a source, or changes the named columns of one ("table": "schema.table" names the table). Reads the '
    'types from the catalog, and refuses a table that does not meet the conditions of the safety '
    '(tidemark.source_check). Where rows are counted anew (sweep_window was null, or bucket or filter changes beside '
    'it), it waits for passes under way. Returns the row. Raises TM005, and 40001 where the source was changed '
    'meanwhile.';
grant execute on function tidemark.source_set(text, jsonb, text) to tidemark_admin;
