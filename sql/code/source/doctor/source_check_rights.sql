create or replace function tidemark.source_check_rights(definition tidemark.source, relation oid)
returns table ("check" text, status text, detail text, hint text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    name constant text := format('%I.%I', definition.schema_name, definition.table_name);
    code text;
    class constant pg_class := (select c from pg_class c where c.oid = relation);
begin
    "check" := 'rights'; status := 'ok'; hint := ''; detail := 'tidemark_executor may read it';
    if not has_schema_privilege('tidemark_executor', class.relnamespace, 'usage')
        or not has_table_privilege('tidemark_executor', relation, 'select') then
        status := 'warn';
        detail := 'tidemark_executor may not read it: the role that runs the worker needs the right';
        hint := concat_ws(' ',
            case when not has_schema_privilege('tidemark_executor', class.relnamespace, 'usage')
                then format('grant usage on schema %I to tidemark_executor;', definition.schema_name) end,
            case when not has_table_privilege('tidemark_executor', relation, 'select')
                      then format('grant select on %s to tidemark_executor;', name) end);
    end if;
    return next;

    "check" := 'row security'; status := 'ok'; hint := ''; detail := 'off: a role that may read it sees all rows';
    if class.relrowsecurity then
        status := case when row_security_active(relation) then 'fail' else 'warn' end;
        detail :=
            case when row_security_active(relation)
                      then format('on, and %s would not see all rows: hidden rows would be passed over',
                                  current_user)
            else 'on: a worker that is run by a role to which it applies would not see all rows, and is held' end;
        hint := format('Run the worker as the owner of %s%s, or as a role with bypassrls.', name,
                       case when class.relforcerowsecurity then ' without force row level security' else '' end);
    end if;
    return next;

    code := tidemark.foreign_code(relation);
    "check" := 'code of others'; status := 'ok'; hint := ''; detail := 'reading it runs none';
    if code is not null then
        status := 'fail';
        detail := format('a role that reads it runs code of another role: %s', code);
        hint := format('Have these functions owned by a superuser or by %I, or drop what calls them.', current_user);
    end if;
    return next;
end
$$;
comment on function tidemark.source_check_rights(tidemark.source, oid) is
    'Part of tidemark.source_check: which roles may read the table, and whether they see all rows.';
grant execute on function tidemark.source_check_rights(tidemark.source, oid) to tidemark_reader, tidemark_executor;
