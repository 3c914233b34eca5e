-- public
create or replace function tidemark.command_discard(service text, key text, reason text)
returns json
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    message constant text := 'the operator has given it up';
    parked tidemark.command_parked;
    claim tidemark.command_claim;
    document json;
begin
    if coalesce(btrim(command_discard.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'a command is not given up without a reason';
    end if;
    -- As a retry does: the first command of the ordering key, those behind it, their claims. It waits for a session
    -- that is trying the first one, and looks again if that one was released.
    loop
        select p.* into parked from tidemark.command_parked p
        where p.service = command_discard.service
          and p.idempotency_key between command_discard.key and command_discard.key
        order by p.idempotency_key limit 1;
        exit when not found;
        perform from tidemark.command_parked p
        where p.service = parked.service and p.key = parked.key
        order by p.position limit 1 for no key update;
        continue when not found;
        select p.* into parked from tidemark.command_parked p
        where p.service = command_discard.service
          and p.idempotency_key between command_discard.key and command_discard.key
        order by p.idempotency_key limit 1 for no key update;
        exit;
    end loop;
    if parked.service is null then
        raise exception using errcode = 'TM004',
            message = format('no command of %s is parked under the key "%s"', command_discard.service,
                             command_discard.key),
            hint = 'Parked commands: select service, idempotency_key from tidemark.command_parked;';
    end if;
    update tidemark.command_claim m
    set state = 'failed_terminal', error_code = coalesce(m.error_code, 'runtime.retries_exhausted'),
        error_message = message, processed_at = clock_timestamp(),
        expires_at = greatest(m.expires_at, clock_timestamp() + (tidemark.command_of(parked.call)).retention)
    where m.service = parked.service and m.idempotency_key = parked.idempotency_key
    returning m.* into claim;
    document := tidemark.command_document(parked.call, claim.state, claim.error_code, message, claim.processed_at, null,
                                          claim.attempts);
    perform tidemark.command_release(array[parked.service], array[parked.idempotency_key]);
    perform tidemark.command_letter(
        parked.call || jsonb_build_object('first_failed_at', parked.first_failed_at), claim.error_code, message,
        parked.sqlstate, claim.attempts, null);
    perform tidemark.command_publish('result', array[parked.call], array[document::jsonb]);
    insert into tidemark.audit (action, object, reason)
    values ('command_discard', format('command %s %s', parked.service, parked.idempotency_key), command_discard.reason);
    return document;
end
$$;
comment on function tidemark.command_discard(text, text, text) is
    'Gives up a parked command, by its service and idempotency key: it is failed_terminal, with its last reason code, '
    'a dead letter and a result, which it returns, and the next command of its ordering key is due. Raises TM004, '
    'TM005 (no reason).';
grant execute on function tidemark.command_discard(text, text, text) to tidemark_admin;
