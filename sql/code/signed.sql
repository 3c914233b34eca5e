create or replace function tidemark.signed()
returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    new := jsonb_populate_record(new, jsonb_build_object(tg_argv[0], tidemark.login()));
    return new;
end
$$;
comment on function tidemark.signed() is 'Trigger: the column that its argument names has the role that logged in (tidemark.login), whatever was given. Where it cannot be told, the statement fails.';
revoke all on function tidemark.signed() from public;
