create or replace function tidemark.configuration_lock()
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    -- It conflicts with itself, and with no change of rows, such as those of a plan. An advisory lock would be one that
    -- any login can take.
    lock table tidemark.owned in share update exclusive mode;
end
$$;
comment on function tidemark.configuration_lock() is
    'Lets one tidemark.configuration_apply run at a time, until the end of the transaction.';
grant execute on function tidemark.configuration_lock() to tidemark_admin;
