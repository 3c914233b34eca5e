-- public
-- The doctor checks in this order: the table, its columns, the conditions of the safety, the index for pages, rights,
-- and a few rows. It skips every check that depends on a missing or forbidden object.
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

    -- Check this before the first read of a row, which would run the policy or index function found here.
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
    -- Never a failure: a worker may be set up before its function is created.
    return query
    select 'function of ' || w.worker, case when h.problem is null then 'ok' else 'warn' end,
           coalesce(h.problem, format('%s takes %s', w.handler_ref, case h.takes
               when 'bounds' then 'the bounds of a page' else 'the rows of a page' end)),
           case when h.problem is null then '' else 'The worker is held until it has its function.' end
    from tidemark.worker w cross join lateral tidemark.source_handler(w, definition, relation) h
    where w.handler = 'sql' and definition.id_type is not null
      and exists (select from tidemark.worker_cursor c where c.worker = w.worker and c.source = definition.source)
    order by w.worker;
end
$$;
comment on function tidemark.source_check(tidemark.source) is
    'The doctor: checks in the catalog, and in a few rows, the conditions that the source''s safety needs, and names '
    'the form of each worker''s SQL function. One row per check: status ok, warn (cannot be proved, or will be slow) '
    'or fail (the safety cannot hold); detail is the result, hint the statement to run. definition need not be '
    'stored, and its types may be null. Only reads, with the rights of the caller.';
grant execute on function tidemark.source_check(tidemark.source) to tidemark_reader, tidemark_executor;
