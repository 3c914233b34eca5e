-- public
-- Text, json or jsonb: of text the function itself reports what is wrong with it.
create or replace function tidemark.command_run(
    envelope anycompatible, key text default null, dry_run boolean default false)
returns json
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    given text;
    login constant name := tidemark.login();
    closed text;
    call jsonb;
    code text;
    message text;
    c tidemark.command;
    document json;
begin
    -- The cast of another type would run code of the type's owner, with the rights of this function.
    if pg_typeof(envelope) not in ('text'::regtype, 'varchar'::regtype, 'json'::regtype, 'jsonb'::regtype) then
        raise exception using errcode = 'TM005',
            message = format('the envelope is of type %s, and must be text, json or jsonb', pg_typeof(envelope)),
            hint = 'select tidemark.command_run(''{"event_id": …}'');';
    end if;
    given := envelope::text;
    perform tidemark.session_check('a command', 'otherwise a command would not see the claim of the one before it.');
    select e.call, e.code, e.message into call, code, message from tidemark.command_envelope(given) e;
    -- The gate comes first where it can be told: behind a closed gate nothing happens, not even a rejection.
    closed := case when call ? 'service' then tidemark.closed_command(call ->> 'service')
                   when not tidemark.gate_open('commands.enabled') then 'commands.enabled' end;
    if closed = 'commands.enabled' or closed is not null
        and exists (select from tidemark.service s where s.service = call ->> 'service') then
        raise exception using errcode = 'TM009', message = 'no command ran: closed by ' || closed,
            hint = format('As an operator: select tidemark.gate_set(%L, true);', closed);
    end if;
    call := call || jsonb_strip_nulls(jsonb_build_object('via', 'psql', 'login', login, 'key', key));
    if code is null then
        select p.code, p.message into code, message from tidemark.command_problem(call) p;
    end if;
    if code is not null then
        return tidemark.command_reject(call, code, message, convert_to(given, 'UTF8'));
    end if;

    c := tidemark.command_of(call);
    call := call || jsonb_build_object(
        'fingerprint', encode(tidemark.command_fingerprint(c.service, call ->> 'tenant', c.command, c.version,
                                                           call -> 'payload'), 'hex'),
        'raw', jsonb_build_object('value', encode(convert_to(given, 'UTF8'), 'base64')));
    if not (dry_run or c.dry_run) then
        return tidemark.command_try(call);
    end if;
    document := tidemark.command_dry_run(call, false);
    return (left(document::text, -1) || ', "dry_run" : true}')::json;
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
