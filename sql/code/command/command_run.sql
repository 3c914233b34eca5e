-- public
-- Text, json or jsonb: of text the function itself reports what is wrong with it.
create or replace function tidemark.command_run(
    envelope anycompatible, key text default null, dry_run boolean default false)
returns json
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    -- The cast of another type would run code of the type's owner, with the rights of this function.
    if pg_typeof(envelope) not in ('text'::regtype, 'varchar'::regtype, 'json'::regtype, 'jsonb'::regtype) then
        raise exception using errcode = 'TM005',
            message = format('the envelope is of type %s, and must be text, json or jsonb', pg_typeof(envelope)),
            hint = 'select tidemark.command_run(''{"event_id": …}'');';
    end if;
    return tidemark.command_ask(envelope::text, command_run.key, 'psql', null, command_run.dry_run, false,
                                null);
end
$$;
comment on function tidemark.command_run(anycompatible, text, boolean) is
    'Runs a command from its envelope (text, json or jsonb), with the same checks, tables and answer as from Kafka, '
    'and returns the result document. key: the ordering key; by default the idempotency key. dry_run, or a command in '
    'dry run: it is executed and rolled back, nothing is published, and the answer, with "dry_run": true, is in '
    'tidemark.command_record. A command that is refused is an answer, not an error. Raises TM009 where a gate is '
    'closed, the command is off or the installation is not live; TM006, TM007, TM015; and outages (08, 53, 57, 58) as '
    'they come.';
grant execute on function tidemark.command_run(anycompatible, text, boolean) to tidemark_executor;
