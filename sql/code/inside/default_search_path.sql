create or replace function tidemark.default_search_path()
returns text
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    -- The view looks at every setting that there is. What a session began with does not change.
    if coalesce(current_setting('tidemark.default_search_path', true), '') = '' then
        perform set_config('tidemark.default_search_path',
                           (select s.reset_val from pg_settings s where s.name = 'search_path'), false);
    end if;
    return current_setting('tidemark.default_search_path');
end
$$;
comment on function tidemark.default_search_path() is
    'The search_path that a new session of this role in this database begins with: what an SQL target runs with.';
grant execute on function tidemark.default_search_path() to tidemark_executor;
