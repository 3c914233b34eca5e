-- Check the login, since the current user of its callers is the owner of the log.
create or replace function tidemark.capture_backfill_own(relation oid, name text)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    login constant name := tidemark.login();
begin
    -- No to_regclass: the log's owner may not use the schema.
    if not exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace
                   where c.oid = capture_backfill_own.relation
                     and format('%I.%I', n.nspname, c.relname) = capture_backfill_own.name
                     and pg_has_role(login, c.relowner, 'member')) then
        raise exception using errcode = '42501',
            message = format('%s must be owner of table %s', login, capture_backfill_own.name),
            hint = 'Log in as a member of the owner of the table: its rows become events of the domain.';
    end if;
end
$$;
comment on function tidemark.capture_backfill_own(oid, text) is
    'Raises 42501 where the login (tidemark.login) is no member of the owner of the table, or the name is that of '
    'another table.';
