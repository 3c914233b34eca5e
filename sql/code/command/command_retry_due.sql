create or replace function tidemark.command_retry_due(service text, idempotency_key text, overdue boolean)
returns json
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    parked tidemark.command_parked;
    call jsonb;
    code text;
    message text;
    answer json;
begin
    select p.* into parked from tidemark.command_parked p
    where p.service = command_retry_due.service and p.idempotency_key = command_retry_due.idempotency_key
      and p.next_attempt_at <= clock_timestamp() for no key update skip locked;
    if not found then
        return null;
    end if;
    call := parked.call || '{"parked": true}';
    -- By the allowlist of now, not the one under which it was parked.
    select p.code, p.message into code, message
    from tidemark.command_problem(parked.call, tidemark.command_of(parked.call)) p;
    if code like 'identity.%' then
        return tidemark.command_fail(call, 'terminal', code, message, null, 0);
    end if;
    if overdue then
        return tidemark.command_fail(call, 'outage', 'runtime.timeout', 'the command did not come to an end', '57014',
                                     1);
    end if;
    answer := tidemark.command_try(call || jsonb_build_object('failed', (
        select m.attempts from tidemark.command_claim m
        where m.service = parked.service and m.idempotency_key = parked.idempotency_key)));
    if answer ->> 'status' = 'processed' then
        perform tidemark.command_release(array[parked.service], array[parked.idempotency_key]);
        perform tidemark.finding_close('command_circuit', format('%s.%s/v%s', parked.service, call ->> 'command',
                                                                 call ->> 'command_version'));
    end if;
    return answer;
end
$$;
comment on function tidemark.command_retry_due(text, text, boolean) is
    'Tries a parked command that is due. overdue: it did not come to an end before; it is not tried, and waits on. '
    'Returns the result document; null: it is not due any more, or another session is trying it.';
