create or replace function tidemark.command_reset()
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    ran constant text := coalesce(current_setting('tidemark.ran', true), '');
    -- By which the server ends a function that catches its timeout and goes on.
    watch constant text := current_setting('client_connection_check_interval');
begin
    -- Also what a SET LOCAL hides until the commit, and settings of which Tidemark has never heard.
    reset all;
    -- With the names of schemas, since they would be looked up in the path of the session.
    perform pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true),
            pg_catalog.set_config('tidemark.ran', ran, true),
            pg_catalog.set_config('tidemark.pooled', 'true', true),
            pg_catalog.set_config('client_connection_check_interval', watch, true);
end
$$;
comment on function tidemark.command_reset() is
    'Resets the settings of the session to those that it began with, for the next command, which may be of another '
    'team, and the next user of the session. The search path is pg_catalog, pg_temp until the transaction ends.';
