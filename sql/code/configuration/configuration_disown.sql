create or replace function tidemark.configuration_disown(kind text, name text)
returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
    delete from tidemark.owned o where o.kind = configuration_disown.kind and o.name = configuration_disown.name
$$;
comment on function tidemark.configuration_disown(text, text) is 'A thing is no longer of a file.';
grant execute on function tidemark.configuration_disown(text, text) to tidemark_admin;
