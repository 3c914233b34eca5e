-- Granted to no role: it believes its arguments.
create or replace function tidemark.command_fail(
    call jsonb, kind text, code text, message text, sqlstate_ text, failed integer)
returns json
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    at constant timestamptz := clock_timestamp();
    parked tidemark.command_parked;
    place tid; -- of parked
    c tidemark.command;
    closed text;
    waits boolean; -- for the operator
    errors integer;
    delay interval;
    outcome text;
    document json;
begin
    perform tidemark.command_kept(call);
    c := tidemark.command_of(call);
    closed := tidemark.closed_command(c.service);
    if closed is not null then
        raise exception using errcode = 'TM009', message = 'no failure was recorded: closed by ' || closed,
            hint = format('As an operator: select tidemark.gate_set(%L, true);', closed);
    end if;
    if call ? 'parked' then
        -- Only the primary key has this order.
        select p.ctid into place from tidemark.command_parked p
        where p.service = c.service
          and p.idempotency_key between command_fail.call ->> 'idempotency_key'
                                    and command_fail.call ->> 'idempotency_key'
        order by p.idempotency_key limit 1 for no key update;
        select p.* into parked from tidemark.command_parked p where p.ctid = place;
    end if;
    -- A payload can ask for what no right allows, such as a row that a policy keeps from its tenant. If other commands
    -- of the version have succeeded since, there may be nothing to mend: its retries end.
    waits := kind = 'operator' and (sqlstate_ <> '42501' or not exists (
        select from tidemark.command_claim m
        where m.service = c.service and m.command = c.command and m.version = c.version and m.state = 'processed'
          and m.processed_at > parked.first_failed_at
          and m.expires_at > parked.first_failed_at + c.retention)); -- implied; by its index
    -- What an operator has to mend is not the command's fault: it counts no failure, and ends no retries. An outage
    -- that lets this be written is of this command alone, such as that of a foreign server, or its function's word.
    errors := coalesce(parked.error_count, 0) + case when waits then 0 else 1 end;
    delay := case when waits then interval '1 minute'
                  when kind = 'outage' then tidemark.retry_delay(
                      coalesce(c.retry_policy, '{}') || jsonb_build_object('max_attempts', errors + 1), errors)
                  when kind = 'terminal' or code = 'runtime.timeout' and errors >= 2 then null
                  else tidemark.retry_delay(c.retry_policy, errors) end;
    outcome := case when delay is null then 'failed_terminal' else 'failed_retryable' end;
    if call ? 'parked' then
        update tidemark.command_claim m
        set state = outcome, error_code = code, error_message = message, processed_at = at,
            attempts = m.attempts + failed, expires_at = greatest(m.expires_at, at + c.retention)
        where m.service = c.service and m.idempotency_key = call ->> 'idempotency_key'
          and m.state = 'failed_retryable' and parked.service is not null
        returning m.attempts into failed;
        if not found then
            raise exception using errcode = 'TM005', message = 'a command that failed again is not parked',
                hint = 'Only tidemark.command_retry tries a command again.';
        end if;
    else
        if not tidemark.command_claim_add(call, c, outcome, code, message, failed, at) then
            return null;
        end if;
    end if;

    document := tidemark.command_document(call, outcome, code, message, at, null, failed);
    if outcome = 'failed_retryable' then
        if call ? 'parked' then
            update tidemark.command_parked p
            set error_count = errors, next_attempt_at = at + delay, sqlstate = sqlstate_ where p.ctid = place;
        else
            -- A pass that did not come to an end has not asked what is parked before this one.
            perform tidemark.command_park(call, at + delay, errors, sqlstate_);
        end if;
    else
        if call ? 'parked' then
            perform tidemark.command_release(array[c.service], array[call ->> 'idempotency_key']);
        end if;
        perform tidemark.command_letter(
            call || jsonb_strip_nulls(jsonb_build_object('first_failed_at', parked.first_failed_at)), code, message,
            sqlstate_, failed, null);
    end if;
    if waits or kind = 'outage' then
        perform tidemark.finding_open('command_circuit', c.name, 'high',
            format('its commands wait: %s (%s)', tidemark.error_means(sqlstate_), code), message);
    end if;
    -- Published once when parked, and once at the end: also where its producer is not allowed any more.
    if outcome = 'failed_terminal' or not call ? 'parked' then
        perform tidemark.command_publish('result', array[call], array[document::jsonb]);
    end if;
    return document;
end
$$;
comment on function tidemark.command_fail(jsonb, text, text, text, text, integer) is
    'Records the failure of a command whose effect is rolled back: parks it (retryable; operator and outage: without '
    'end), or gives it up with a dead letter (terminal, or the last retry). kind, code, message '
    'and sqlstate_ are those of the error of tidemark.command_batch; failed is how often it was executed now. Returns '
    'the result document, which it emits; null: another session has claimed the key since, and the batch must be run '
    'again.';
