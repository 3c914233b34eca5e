-- Granted to no role: it believes what via says of how the producer was verified.
create or replace function tidemark.command_ask(
    given text, key text, via text, misfit jsonb, dry_run boolean, overdue boolean, judged text)
returns json
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    login constant name := tidemark.login();
    closed text;
    call jsonb;
    code text;
    message text;
    c tidemark.command;
    document json;
begin
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
    call := call || jsonb_strip_nulls(jsonb_build_object('via', via, 'login', login, 'key', key, 'misfit', misfit,
                                                        'judged', judged));
    if code is null then
        c := tidemark.command_of(call);
        -- As in tidemark.command_passes: the daemon has read the schema a moment ago.
        if c.unchecked is distinct from '{}' and judged <> md5(c.payload_schema::text) then
            raise exception using errcode = 'lock_not_available',
                message = format('the schema of %s changed after the daemon read it', c.name),
                hint = 'Nothing was done. Ask again: the daemon reads the current schema.';
        end if;
        select p.code, p.message into code, message from tidemark.command_problem(call, c) p;
    end if;
    if code is not null then
        return tidemark.command_reject(call, code, message, convert_to(given, 'UTF8'));
    end if;

    call := (call - 'misfit') || jsonb_build_object(
        'fingerprint', encode(tidemark.command_fingerprint(c.service, call ->> 'tenant', c.command, c.version,
                                                           call -> 'payload'), 'hex'),
        'raw', jsonb_build_object('value', encode(convert_to(given, 'UTF8'), 'base64')));
    if not (dry_run or c.dry_run) then
        if overdue then
            perform tidemark.command_gate_check(jsonb_build_array(call));
            document := tidemark.command_fail(call, 'outage', 'runtime.timeout', 'the command did not come to an end',
                                              '57014', 1);
        end if;
        -- Where the key was claimed before, this tells what became of that.
        return coalesce(document, tidemark.command_try(call));
    end if;
    document := tidemark.command_dry_run(call, overdue);
    return (left(document::text, -1) || ', "dry_run" : true}')::json;
end
$$;
comment on function tidemark.command_ask(text, text, text, jsonb, boolean, boolean, text) is
    'A command that is asked for in this session, from its envelope to its result document, for tidemark.command_run '
    'and tidemark.command_ingress. misfit: what the daemon found wrong with the payload, and of which schema. '
    'overdue: it did not come to an end before, and is parked without being run. judged: as of '
    'tidemark.command_ingress.';
