create or replace function tidemark.source_error(plan tidemark.source_plan, code text)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select source_error.code || ': ' || coalesce((
        select format('%I may not read %I.%I: it needs usage on the schema and select on the table', current_user,
                      n.nspname, c.relname)
        from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where source_error.code = '42501' and c.oid = (plan).relation
          and not (has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select'))),
        tidemark.error_means(source_error.code)
        || case when ((plan).worker).handler = 'emit' then ' (of ' || ((plan).worker).handler_ref || ')' else '' end)
$$;
comment on function tidemark.source_error(tidemark.source_plan, text) is
    'What holds a worker of a table, for all roles: the code of the error and what it means; where the caller may not '
    'read the table, that.';
grant execute on function tidemark.source_error(tidemark.source_plan, text) to tidemark_executor;
