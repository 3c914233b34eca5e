create or replace function tidemark.default_search_path()
returns text
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Null is what the session began with, whatever was set since. It ends with this function. A note of it in a
    -- setting of its own could be forged by any function that runs in this session.
    perform set_config('search_path', null, true);
    return pg_catalog.current_setting('search_path');
end
$$;
comment on function tidemark.default_search_path() is
    'The search_path that a new session of this role in this database begins with: what an SQL target runs with.';
grant execute on function tidemark.default_search_path() to tidemark_executor;
