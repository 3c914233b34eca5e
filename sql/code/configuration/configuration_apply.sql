-- public
create or replace function tidemark.configuration_apply(
    file text, things jsonb, reason text, prune boolean default false, take boolean default false)
returns table (change text, kind text, name text, field text, was jsonb, becomes jsonb)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    -- One after the other, and each begins with what the one before has left: what is as its file has it is skipped.
    perform tidemark.configuration_lock();
    return query
    select c.change, c.kind, c.name, c.field, c.was, c.becomes
    from tidemark.configuration_change(configuration_apply.file, configuration_apply.things,
                                       configuration_apply.reason, configuration_apply.prune,
                                       configuration_apply.take) c;
end
$$;
comment on function tidemark.configuration_apply(text, jsonb, text, boolean, boolean) is
    'Makes the configuration that of a file, in the caller''s transaction: things is [{"kind": …, "name": …, '
    '"definition": {…}}, …] as tidemark.configuration() gives them, and replaces what the file had. Returns what it '
    'changed, field by field (roll back for a plan). The file owns what it names (adopt: a thing of no file); it '
    'does not change what another file owns, unless take. What it owned and names no more is left, or with prune '
    'deleted. ignored: the gate worker.commands.enabled, which an earlier release had. Raises TM005 (no reason, a '
    'thing of another file), and what the functions for the kinds raise.';
grant execute on function tidemark.configuration_apply(text, jsonb, text, boolean, boolean) to tidemark_admin;
