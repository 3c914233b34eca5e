create or replace function tidemark.time_notice()
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    if tidemark.time_left() is null and coalesce(current_setting('tidemark.told_of_time', true), '') = '' then
        perform set_config('tidemark.told_of_time', 'yes', false);
        raise notice using
            message = 'nothing ends a target or handler that hangs: this session has no statement_timeout',
            hint = 'Before the pass: set statement_timeout = ''30s''; a multiple of the longest timeout of the routes.';
    end if;
end
$$;
comment on function tidemark.time_notice() is
    'Raises a notice, once a session, where there is no statement_timeout: nothing would end a target or a handler '
    'that hangs.';
grant execute on function tidemark.time_notice() to tidemark_executor;
