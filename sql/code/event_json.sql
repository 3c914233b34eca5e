create or replace function tidemark.event_json(event tidemark.outbox)
returns jsonb
language sql stable parallel safe
as $$
    select pg_catalog.jsonb_build_object(
        'event_id', event.event_id, 'seq', event.seq, 'domain', event.domain, 'type', event.type,
        'stream', event.stream, 'key', event.key, 'lane', event.lane, 'severity', event.severity,
        'subject_table', event.subject_table, 'subject_ref', event.subject_ref,
        'idempotency_key', event.idempotency_key, 'trace', event.trace, 'actor', event.actor,
        'occurred_at', event.occurred_at, 'created_at', event.created_at, 'payload', event.payload)
$$;
comment on function tidemark.event_json(tidemark.outbox) is 'An event as SQL targets get it, and as dead letters keep it.';
revoke all on function tidemark.event_json(tidemark.outbox) from public;
grant execute on function tidemark.event_json(tidemark.outbox) to tidemark_executor, tidemark_admin;
