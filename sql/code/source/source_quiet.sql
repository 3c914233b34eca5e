create or replace function tidemark.source_quiet(relation regclass)
returns boolean
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return tidemark.fence_now(source_quiet.relation) = '{}';
end
$$;
comment on function tidemark.source_quiet(regclass) is
    'Whether no transaction under way, nor a prepared one, holds the lock with which rows are written to the table.';
grant execute on function tidemark.source_quiet(regclass) to tidemark_executor;
