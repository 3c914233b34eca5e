-- Before and after each command. A list is cheap: pg_settings would take a millisecond. The search path is not in it:
-- tidemark.command_execute watches that.
create or replace function tidemark.command_settings()
returns text[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    return array[
        'application_name ' || current_setting('application_name'),
        'array_nulls ' || current_setting('array_nulls'),
        'bytea_output ' || current_setting('bytea_output'),
        'check_function_bodies ' || current_setting('check_function_bodies'),
        'client_connection_check_interval ' || current_setting('client_connection_check_interval'),
        'client_encoding ' || current_setting('client_encoding'),
        'client_min_messages ' || current_setting('client_min_messages'),
        'DateStyle ' || current_setting('DateStyle'),
        'default_transaction_deferrable ' || current_setting('default_transaction_deferrable'),
        'default_transaction_isolation ' || current_setting('default_transaction_isolation'),
        'default_transaction_read_only ' || current_setting('default_transaction_read_only'),
        'exit_on_error ' || current_setting('exit_on_error'),
        'extra_float_digits ' || current_setting('extra_float_digits'),
        'idle_in_transaction_session_timeout ' || current_setting('idle_in_transaction_session_timeout'),
        'idle_session_timeout ' || current_setting('idle_session_timeout'),
        'IntervalStyle ' || current_setting('IntervalStyle'),
        'lock_timeout ' || current_setting('lock_timeout'),
        'row_security ' || current_setting('row_security'),
        'session_replication_role ' || current_setting('session_replication_role'),
        'standard_conforming_strings ' || current_setting('standard_conforming_strings'),
        'statement_timeout ' || current_setting('statement_timeout'),
        'synchronous_commit ' || current_setting('synchronous_commit'),
        'TimeZone ' || current_setting('TimeZone'),
        'transaction_read_only ' || current_setting('transaction_read_only'),
        'transaction_timeout ' || current_setting('transaction_timeout', true), -- from PostgreSQL 17 on
        'transform_null_equals ' || current_setting('transform_null_equals'),
        'xmloption ' || current_setting('xmloption')];
end
$$;
comment on function tidemark.command_settings() is
    'Settings that a function of a command must leave in the session as they are, each with its value.';
