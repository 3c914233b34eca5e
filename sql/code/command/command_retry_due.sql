create or replace function tidemark.command_retry_due(service text, idempotency_key text, overdue boolean)
returns json
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    call jsonb;
    code text;
    message text;
    answer json;
begin
    select b.calls[1] into call from tidemark.command_retry_begin(
        array[command_retry_due.service], array[command_retry_due.idempotency_key], 1) b;
    if call is null then
        return null;
    end if;
    -- By the allowlist of now, not the one under which it was parked.
    select p.code, p.message into code, message
    from tidemark.command_problem(call, tidemark.command_of(call)) p;
    if code like 'identity.%' then
        return tidemark.command_fail(call - 'failed', 'terminal', code, message, null, 0);
    end if;
    if overdue then
        return tidemark.command_fail(call - 'failed', 'outage', 'runtime.timeout', 'the command did not come to an end',
                                     '57014', 1);
    end if;
    answer := tidemark.command_try(call);
    if answer ->> 'status' = 'processed' then
        perform tidemark.command_release(array[command_retry_due.service], array[command_retry_due.idempotency_key]);
        perform tidemark.finding_close('command_circuit', format('%s.%s/v%s', call ->> 'service', call ->> 'command',
                                                                 call ->> 'command_version'));
        -- Both may have waited.
        perform tidemark.command_gate_check(jsonb_build_array(call));
    end if;
    return answer;
end
$$;
comment on function tidemark.command_retry_due(text, text, boolean) is
    'Tries a parked command that is due. overdue: it did not come to an end before; it is not tried, and waits on. '
    'Returns the result document; null: it is not due any more, or another session is trying it.';
