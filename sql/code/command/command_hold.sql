create or replace function tidemark.command_hold(call jsonb)
returns json
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    at constant timestamptz := clock_timestamp();
    lane constant text := coalesce(call ->> 'key', call ->> 'idempotency_key');
    document json;
begin
    insert into tidemark.command_claim (
        service, idempotency_key, fingerprint, state, event_id, command, version, tenant, producer, via, topic_id,
        partition, "offset", processed_at, attempts, expires_at)
    select k.service, call ->> 'idempotency_key', decode(call ->> 'fingerprint', 'hex'), 'failed_retryable',
           (call ->> 'event_id')::uuid, k.command, k.version, call ->> 'tenant', call ->> 'producer', call ->> 'via',
           call ->> 'topic_id', (call ->> 'partition')::integer, (call ->> 'offset')::bigint, at, 0, at + k.retention
    from tidemark.command k
    where k.service = call ->> 'service' and k.command = call ->> 'command'
      and k.version = (call ->> 'command_version')::integer
    on conflict do nothing;
    if found then
        insert into tidemark.command_parked (service, idempotency_key, key, call, next_attempt_at)
        select call ->> 'service', call ->> 'idempotency_key', lane, call,
               case when exists (select from tidemark.command_parked p
                                 where p.service = command_hold.call ->> 'service' and p.key = lane)
                    then 'infinity' else at end;
        document := tidemark.command_document(call, 'failed_retryable', null, 'waits until the command is on', at,
                                              null, 0);
    else
        document := tidemark.command_asked(call);
    end if;
    if document ->> 'status' <> 'redelivered' then
        perform tidemark.command_publish('result', array[call], array[document::jsonb]);
    end if;
    return document;
end
$$;
comment on function tidemark.command_hold(jsonb) is
    'Parks a checked command that is off: tidemark.command_retry takes it up when it is on. Returns the result '
    'document, which it emits; of a key that was claimed before, that of tidemark.command_asked.';
