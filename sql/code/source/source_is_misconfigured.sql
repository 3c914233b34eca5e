create or replace function tidemark.source_is_misconfigured(sqlstate_ text)
returns boolean
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select sqlstate_ in ('42P01', '42703', '42883', '0A000', '42501', '42804', '42601', 'TM001')
$$;
comment on function tidemark.source_is_misconfigured(text) is
    'True: no row caused the error. The table, the function or the rights have changed, and an operator must repair '
    'them; tidemark.source_pass holds the worker.';
grant execute on function tidemark.source_is_misconfigured(text) to tidemark_executor;
