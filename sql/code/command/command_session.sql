-- Read before and after each batch. A list of names is cheap: pg_settings would take a millisecond. The search path is
-- not in it: tidemark.command_execute watches that.
create or replace function tidemark.command_session()
returns text[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    return array(
        select concat_ws(' ', 'setting', s.name, current_setting(s.name, true))
        from unnest(array[
            'bytea_output', 'check_function_bodies', 'client_encoding', 'client_min_messages', 'DateStyle',
            'default_transaction_deferrable', 'default_transaction_isolation', 'default_transaction_read_only',
            'extra_float_digits', 'idle_in_transaction_session_timeout', 'IntervalStyle', 'row_security',
            'session_replication_role', 'standard_conforming_strings', 'statement_timeout', 'TimeZone',
            'transaction_read_only', 'xmloption']) s (name)
        union all
        -- The time tells a statement from one of the same name and text that was prepared with another search path. It
        -- is a number: a command may have changed the style of dates.
        select concat_ws(' ', 'prepared statement', quote_ident(p.name), extract(epoch from p.prepare_time),
                         p.statement)
        from pg_prepared_statements p
        union all
        select concat_ws(' ', 'cursor', quote_ident(c.name), extract(epoch from c.creation_time))
        from pg_cursors c where c.is_holdable
        order by 1);
end
$$;
comment on function tidemark.command_session() is
    'What a function of a command must leave in the session as it is: settings, prepared statements, and cursors with '
    'hold, whose queries would run at the commit with the rights of the session.';
