-- public
-- The doctor, in the order in which it looks: the table, its columns, what the safety rests on, how pages are found,
-- who may read, and what the rows look like. What is not there, or must not be read, is not looked at any further.
create or replace function tidemark.source_check(definition tidemark.source)
returns table ("check" text, status text, detail text, hint text)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    relation constant oid := (
        select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = definition.schema_name and c.relname = definition.table_name);
    failed boolean := false;
begin
    -- A definition that is not stored yet has no defaults.
    definition.margin := coalesce(definition.margin, interval '1 second');
    definition.key_columns := coalesce(definition.key_columns, '{}');
    definition.group_key := coalesce(definition.group_key, '{}');

    for "check", status, detail, hint in select t."check", t.status, t.detail, t.hint
                                         from tidemark.source_check_table(definition, relation) t loop
        failed := failed or status = 'fail';
        return next;
    end loop;
    if failed then
        return;
    end if;
    for "check", status, detail, hint in select c."check", c.status, c.detail, c.hint
                                         from tidemark.source_check_columns(definition, relation) c loop
        failed := failed or status = 'fail';
        return next;
    end loop;
    if failed then
        return;
    end if;

    -- Before the first look at a row, which would run what is found here: a policy, an index's function.
    if exists (select from tidemark.source_check_rights(definition, relation) r where r.status = 'fail') then
        return query select * from tidemark.source_check_rights(definition, relation);
        return;
    end if;
    return query select * from tidemark.source_check_safety(definition, relation);
    if definition.safety = 'sequence' then
        return query select * from tidemark.source_check_sequence(definition, relation);
    end if;
    if definition.timestamp_column is not null then
        return query select * from tidemark.source_check_time(definition, relation);
    end if;
    return query select * from tidemark.source_check_index(definition, relation);
    return query select * from tidemark.source_check_rights(definition, relation);
    return query select * from tidemark.source_check_filter(definition, relation);
    return query select * from tidemark.source_check_rows(definition, relation);
end
$$;
comment on function tidemark.source_check(tidemark.source) is
    'The doctor: looks in the catalog, and in a few rows, for what the source''s safety rests on. A row per check: '
    'status ok, warn (cannot be proved, or will cost) or fail (cannot hold); detail says what was found, hint what to '
    'run. definition need not be stored, nor its types be filled in. Only reads, with the rights of the caller.';
grant execute on function tidemark.source_check(tidemark.source) to tidemark_reader, tidemark_executor;
