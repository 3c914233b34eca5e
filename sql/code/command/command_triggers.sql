create or replace function tidemark.command_triggers(out deferring boolean, out settling boolean)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Of foreign keys and unique constraints only built-in functions run.
    select coalesce(bool_or(c.condeferred), false), coalesce(bool_or(c.contype in ('t', 'x')), false)
    into deferring, settling from pg_constraint c where c.condeferrable;
end
$$;
comment on function tidemark.command_triggers() is
    'deferring: whether there are constraints that are deferred without being told so. settling: whether there are '
    'deferrable ones that run code of teams when they are checked: constraint triggers, and exclusion constraints, '
    'which may have expressions.';
