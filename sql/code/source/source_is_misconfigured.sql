create or replace function tidemark.source_is_misconfigured(sqlstate_ text)
returns boolean
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select sqlstate_ in ('42P01', '42703', '42883', '0A000', '42501', '42804', '42601', 'TM001')
$$;
comment on function tidemark.source_is_misconfigured(text) is
    'True: the error is no row''s fault. Whatever changed the table, the function or the rights has to be put right, '
    'and the worker is held: tidemark.source_pass.';
grant execute on function tidemark.source_is_misconfigured(text) to tidemark_executor;
