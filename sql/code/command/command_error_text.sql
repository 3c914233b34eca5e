create or replace function tidemark.command_error_text(
    state text, code text, message text, "constraint" text, "table" text, "column" text)
returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
    -- The message of a function is meant for people. PostgreSQL's own may quote the payload.
    select case
        when code in ('sql.business_rule', 'runtime.timeout', 'runtime.result_too_large', 'runtime.result_invalid')
            then tidemark.command_message(message)
        when code = 'sql.constraint' then format('%s (%s)', tidemark.error_means(state),
            coalesce(nullif("constraint", ''), nullif("table" || '.' || "column", '.'), state))
        else format('%s (%s)', tidemark.error_means(state), state) end
$$;
comment on function tidemark.command_error_text(text, text, text, text, text, text) is
    'The error_message of a failed command: the words of its function, or what the SQLSTATE means. Never a value of '
    'the payload that PostgreSQL quotes, nor SQL.';
