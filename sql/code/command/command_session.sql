-- Read before and after each batch.
create or replace function tidemark.command_session()
returns text[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    return array(
        select 'prepared statement ' || s from unnest(tidemark.session_statements()) s
        union all
        select concat_ws(' ', case when c.is_holdable then 'cursor' else 'open cursor' end, quote_ident(c.name),
                         extract(epoch from c.creation_time), c.statement)
        from pg_cursors c
        union all
        -- A table of it could hide another, also one of the catalog. Every object but the parts of a table has a row.
        select concat_ws(' ', 'temporary object', d.classid, d.objid)
        from pg_depend d
        where pg_my_temp_schema() <> 0 and d.refclassid = 'pg_namespace'::regclass and d.refobjid = pg_my_temp_schema()
        order by 1);
end
$$;
comment on function tidemark.command_session() is
    'What a function of a command must leave in the session as it is, beside settings: prepared statements, temporary '
    'objects, and cursors: one with hold runs its query at the commit with the rights of the session, and the code of '
    'another service could read from any.';
