create or replace function tidemark.command_claim_add(
    call jsonb, command tidemark.command, state text, code text, message text, failed integer, at timestamptz)
returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into tidemark.command_claim (
        service, idempotency_key, fingerprint, state, event_id, command, version, tenant, producer, via, login,
        topic_id, partition, "offset", error_code, error_message, processed_at, attempts, expires_at, trace)
    values (command.service, call ->> 'idempotency_key', decode(call ->> 'fingerprint', 'hex'), state,
            (call ->> 'event_id')::uuid, command.command, command.version, call ->> 'tenant', call ->> 'producer',
            call ->> 'via', (call ->> 'login')::name, call ->> 'topic_id', (call ->> 'partition')::integer,
            (call ->> 'offset')::bigint, code, message, at, failed,
            -- As in tidemark.command_claims_begin.
            greatest(at, (call ->> 'record_at')::timestamptz) + command.retention,
            coalesce(call ->> 'trace', call ->> 'trace_id'))
    on conflict do nothing;
    return found;
end
$$;
comment on function tidemark.command_claim_add(jsonb, tidemark.command, text, text, text, integer, timestamptz) is
    'Claims the key of one command that did not run, or failed. False: it was claimed before.';
