create or replace function tidemark.source_check_filter(definition tidemark.source, relation oid)
returns table ("check" text, status text, detail text, hint text)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set row_security = off
as $$
#variable_conflict use_column
declare
    rel constant text := tidemark.source_row(definition);
    problem constant text := tidemark.filter_problem(definition.filter);
    misread text;
begin
    if definition.filter is null then
        return;
    end if;
    "check" := 'filter'; status := 'ok'; hint := ''; detail := definition.filter;
    if problem is not null then
        status := 'fail';
        detail := format('the filter %s: %s', problem, definition.filter);
        hint := 'A row is passed over once and for good: the filter is one condition over the columns of the row, '
                'without comments.';
        return next;
        return;
    end if;
    if not has_schema_privilege(definition.schema_name, 'usage') then
        status := 'warn';
        detail := format('the filter was not checked: %s may not use the schema', current_user);
        hint := format('grant usage on schema %I to %I;', definition.schema_name, current_user);
        return next;
        return;
    end if;
    begin
        -- Prepare the filter without running it: that needs no right to read, and runs none of its code. It is put once
        -- in round and once in square brackets: a filter that closes one of them early is an error in the other.
        execute format('prepare tidemark_source_check as select from %s where (%s)', rel, definition.filter);
        deallocate tidemark_source_check;
        execute format('prepare tidemark_source_check as select (array[%2$s])[1] from %1$s', rel, definition.filter);
        deallocate tidemark_source_check;
        misread := tidemark.filter_enum_problem(definition.filter, relation);
        if misread is not null then
            status := 'warn';
            detail := misread || ': ' || definition.filter;
            hint := 'Enums are texts in a filter: compare with = and in, and with labels that exist.';
        end if;
    exception when others then
        status := 'fail';
        detail := format('the filter does not compile: %s', sqlerrm);
        hint := 'It is one condition over the columns, such as: kind = ''order'' and amount > 0. Qualify functions '
                'and types outside pg_catalog with their schema.';
    end;
    return next;
end
$$;
comment on function tidemark.source_check_filter(tidemark.source, oid) is
    'Part of tidemark.source_check: the filter is one condition over the row.';
grant execute on function tidemark.source_check_filter(tidemark.source, oid) to tidemark_reader, tidemark_executor;
