create or replace function tidemark.command_reject(call jsonb, code text, message text, value bytea)
returns json
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    policy constant text := case
        -- A result would tell a stranger what he may try next.
        when code like 'identity.%' then 'dead_letter'
        when not exists (select from tidemark.service s where s.service = call ->> 'service') then case
            -- A record has no caller, and no topic that its result could go to.
            when code <> 'contract.unknown_service' or call ? 'topic' then 'dead_letter'
            else coalesce((select s.value from tidemark.setting s where s.key = 'commands.rejected'), 'result') end
        when code in ('contract.unknown_command', 'contract.unsupported_version') then
            (select s.unknown_command from tidemark.service s where s.service = call ->> 'service')
        else 'result' end;
    document constant json := tidemark.command_document(call, 'rejected', code, message, clock_timestamp(), null, 0);
begin
    if policy <> 'result' then
        perform tidemark.command_letter(call, code, message, null, 0, value);
    end if;
    if policy <> 'dead_letter' and exists (select from tidemark.service s where s.service = call ->> 'service') then
        perform tidemark.command_publish('result', array[call], array[document::jsonb]);
    end if;
    return document;
end
$$;
comment on function tidemark.command_reject(jsonb, text, text, bytea) is
    'Rejects a command, which claims nothing: emits the result, makes a dead letter, or both, as the policy for the '
    'reason says. A failure of identity has no result, only a dead letter; what was parked before has had a result, '
    'and has its last one by tidemark.command_fail. Returns the result document.';
