create or replace function tidemark.command_message(message text)
returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
    -- A character has at most four bytes.
    select case when octet_length(message) <= 1024 then message else left(message, (
        select max(n) from generate_series(256, 1024) n where octet_length(left(message, n)) <= 1024)) end
$$;
comment on function tidemark.command_message(text) is
    'The error_message of a result: the first characters of a text, in 1,024 bytes at most.';
