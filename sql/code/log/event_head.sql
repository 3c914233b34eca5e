-- Inlined by its callers, so it has no search_path: a payload that is not asked for is not fetched.
create or replace function tidemark.event_head(event tidemark.outbox)
returns table (
    seq bigint, event_id uuid, created_at timestamptz, occurred_at timestamptz, lane tidemark.lane,
    severity tidemark.severity, domain text, type text, stream text, key text, subject_table text, subject_ref text,
    idempotency_key text, trace text, actor text, emitted_by text)
language sql stable
as $$
    select event.seq, event.event_id, event.created_at, event.occurred_at, event.lane, event.severity,
           event.domain, event.type, event.stream, event.key, event.subject_table, event.subject_ref,
           event.idempotency_key, event.trace, event.actor, event.emitted_by
$$;
comment on function tidemark.event_head(tidemark.outbox) is
    'The columns of an event that tidemark.pass_read returns beside the payload.';
