create or replace function tidemark.command_triggers()
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Of foreign keys and unique constraints only built-in functions run.
    return exists (select from pg_constraint c where c.condeferrable and c.contype in ('t', 'x'));
end
$$;
comment on function tidemark.command_triggers() is
    'Whether there are deferrable constraints that run code of teams when they are checked: constraint triggers, and '
    'exclusion constraints, which may have expressions.';
