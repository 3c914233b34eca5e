-- Not a security definer: the handler runs with the rights of the role that runs the worker. It is a statement of its
-- own, so that the handler's search_path resolves no name in the statement that reads the table.
create or replace function tidemark.source_call(statement text, path text, row_security text, rows anyarray)
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set row_security = off
as $$
declare
    result jsonb;
begin
    perform set_config('row_security', source_call.row_security, true), set_config('search_path', path, true);
    execute statement into result using rows;
    return result;
end
$$;
comment on function tidemark.source_call(text, text, text, anyarray) is
    'Calls a worker''s SQL function with rows ($1 of the statement), with the search_path and row_security given.';
grant execute on function tidemark.source_call(text, text, text, anyarray) to tidemark_executor;
