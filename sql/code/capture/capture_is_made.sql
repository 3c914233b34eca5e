-- The function is declared immutable although it is not, so that the planner evaluates it once per plan instead of once
-- per statement. The statement that calls it reads a transition table of this relation. Every session plans it again
-- after a change of the table's columns, keys or triggers.
create or replace function tidemark.capture_is_made(relation oid, fingerprint text)
returns boolean
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    select tidemark.capture_fingerprint(relation) = fingerprint
       -- A trigger made by hand, without transition tables, could read a table of the session in place of one.
       and not exists (
           select from pg_trigger t
           where t.tgrelid = relation and t.tgfoid::regproc::text ~ E'^tidemark\\.capture_'
             and (t.tgtype & 67 <> 0 or t.tgnewtable is null and t.tgtype & 20 > 0 or t.tgoldtable is null
                  and t.tgtype & 24 > 0))
$$;
comment on function tidemark.capture_is_made(oid, text) is
    'Whether a function of tidemark.capture_make still fits its table: capture_fingerprint is unchanged, and every '
    'trigger is as attached.';
