create or replace function tidemark.source_home(relation regclass)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return tidemark.system_identifier() || '/' || relation::oid;
end
$$;
comment on function tidemark.source_home(regclass) is
    'Identifies the table and its cluster. The value changes when the table is dropped and created again, or the '
    'database is restored elsewhere. Transaction numbers and the record of rows read are then meaningless.';
