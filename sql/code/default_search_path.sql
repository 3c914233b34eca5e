create or replace function tidemark.default_search_path()
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select s.reset_val from pg_settings s where s.name = 'search_path'
$$;
comment on function tidemark.default_search_path() is 'The search_path that a new session of this role in this database begins with: what an SQL target runs with.';
revoke all on function tidemark.default_search_path() from public;
grant execute on function tidemark.default_search_path() to tidemark_executor;
