create or replace function tidemark.command_asked(call jsonb)
returns json
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
    claim tidemark.command_claim;
    code constant text := 'idempotency.key_reused';
    message constant text := 'the key was used before for another command, tenant, payload or producer';
    document json;
begin
    select m.* into strict claim from tidemark.command_claim m
    where m.service = call ->> 'service' and m.idempotency_key = call ->> 'idempotency_key';
    -- The fingerprint has the tenant.
    if encode(claim.fingerprint, 'hex') = call ->> 'fingerprint' and claim.producer = call ->> 'producer' then
        return tidemark.command_document(
            call, case when (claim.topic_id, claim.partition, claim."offset")
                            = (call ->> 'topic_id', (call ->> 'partition')::integer, (call ->> 'offset')::bigint)
                            then 'redelivered' else 'duplicate' end,
            claim.error_code, claim.error_message, claim.processed_at, claim.result, claim.attempts, claim.event_id,
            claim.state);
    end if;
    -- Never the result of the other command.
    perform tidemark.command_letter(call, code, message, null, 1, null);
    return tidemark.command_document(call, 'failed_terminal', code, message, clock_timestamp(), null, 0);
end
$$;
comment on function tidemark.command_asked(jsonb) is
    'The answer to a command whose key was claimed before: duplicate, with the stored result; redelivered, for the '
    'same record; failed_terminal, with a dead letter, for another command, or another producer, under the key.';
