-- Said to be immutable, which it is not: so it is looked at when the statement that asks is planned, and not each time.
-- That statement reads a transition table of this relation, and is planned again in every session after any change
-- of the table's columns, keys or triggers.
create or replace function tidemark.capture_is_made(relation oid, fingerprint text)
returns boolean
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    select tidemark.capture_fingerprint(relation) = fingerprint
       -- A trigger by hand, without transition tables, could have a table of the session's own for one.
       and not exists (
           select from pg_trigger t
           where t.tgrelid = relation and t.tgfoid::regproc::text ~ '^tidemark\.capture_'
             and (t.tgtype & 67 <> 0 or t.tgnewtable is null and t.tgtype & 20 > 0 or t.tgoldtable is null
                  and t.tgtype & 24 > 0))
$$;
comment on function tidemark.capture_is_made(oid, text) is
    'Whether a function of tidemark.capture_make still fits its table: capture_fingerprint is the same, and no '
    'trigger is other than attached.';
