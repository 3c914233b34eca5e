-- public
create or replace function tidemark.armed()
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return exists (
        select from tidemark.stage s
        where s.stage = 'live' and s.database = current_database()
          and s.system_identifier = tidemark.system_identifier());
end
$$;
comment on function tidemark.armed() is
    'True where the stage is live and was made live in this very cluster and database. A copy that is restored '
    'elsewhere is not armed: its routes can run dry, and cannot deliver.';
grant execute on function tidemark.armed() to tidemark_reader, tidemark_executor;
