-- Not a security definer, as tidemark.source_call is not.
create or replace function tidemark.source_call_bounds(
    statement text,
    path text,
    row_security text,
    after_ts timestamptz,
    after_id text,
    to_ts timestamptz,
    to_id text)
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set row_security = off
as $$
declare
    result jsonb;
begin
    perform set_config('row_security', source_call_bounds.row_security, true), set_config('search_path', path, true);
    execute statement into result using after_ts, after_id, to_ts, to_id;
    return result;
end
$$;
comment on function tidemark.source_call_bounds(text, text, text, timestamptz, text, timestamptz, text) is
    'Calls a worker''s SQL function with bounds ($1 to $4 of the statement), with the search_path and row_security '
    'given.';
grant execute on function tidemark.source_call_bounds(text, text, text, timestamptz, text, timestamptz, text)
    to tidemark_executor;
