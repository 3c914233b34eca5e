create or replace function tidemark.source_home(relation regclass)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select c.system_identifier || '/' || source_home.relation::oid from pg_control_system() c
$$;
comment on function tidemark.source_home(regclass) is
    'Which table of which cluster this is: another one where it was dropped and made anew, or the database was '
    'restored elsewhere. Then transaction numbers and what was read say nothing.';
