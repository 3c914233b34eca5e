-- Inlined by tidemark.emit_all, whose search_path it has then: an event is read once, where it is stored.
create or replace function tidemark.emit_given(
    events jsonb,
    fields text[],
    domains text[],
    types text[],
    payloads jsonb[],
    keys text[],
    streams text[],
    lanes text[],
    severities text[],
    subject_tables text[],
    subject_refs text[],
    idempotency_keys text[],
    traces text[],
    actors text[],
    occurred_at timestamptz[])
returns table (
    ord bigint, domain text, type text, payload jsonb, key text, stream text, lane text, severity text,
    subject_table text, subject_ref text, idempotency_key text, trace text, actor text, occurred_at_ timestamptz)
language sql stable
as $$
    select e.ord, e.event ->> 'domain' as domain, e.event ->> 'type' as type,
           coalesce(e.event -> 'payload', '{}') as payload, e.event ->> 'key' as key,
           e.event ->> 'stream' as stream, e.event ->> 'lane' as lane, e.event ->> 'severity' as severity,
           e.event ->> 'subject_table' as subject_table, e.event ->> 'subject_ref' as subject_ref,
           e.event ->> 'idempotency_key' as idempotency_key, e.event ->> 'trace' as trace,
           e.event ->> 'actor' as actor, (e.event ->> 'occurred_at')::timestamptz as occurred_at
    from pg_catalog.jsonb_array_elements(events) with ordinality e (event, ord)
    where case when pg_catalog.jsonb_typeof(e.event) = 'object' and not e.event ?| '{lane,severity}'
                    then e.event - fields = '{}' else false end
       or tidemark.event_fields_check(e.event, fields, pg_catalog.format('event %s', e.ord))
    union all
    select e.ord, e.domain, e.type, coalesce(e.payload, '{}'), e.key, e.stream, e.lane, e.severity, e.subject_table,
           e.subject_ref, e.idempotency_key, e.trace, e.actor, e.occurred_at
    from unnest(domains, types, payloads, keys, streams, lanes, severities, subject_tables, subject_refs,
                idempotency_keys, traces, actors, occurred_at) with ordinality
        e (domain, type, payload, key, stream, lane, severity, subject_table, subject_ref, idempotency_key, trace,
           actor, occurred_at, ord)
    where e.lane is null and e.severity is null
       or tidemark.event_fields_check(pg_catalog.jsonb_build_object('lane', e.lane, 'severity', e.severity), fields,
                                      pg_catalog.format('event %s', e.ord))
$$;
comment on function tidemark.emit_given(
    jsonb, text[], text[], text[], jsonb[], text[], text[], text[], text[], text[], text[], text[], text[], text[],
    timestamptz[]) is
    'The events that tidemark.emit_all is given, as JSON or as arrays, with their position. A check returns true or '
    'raises, and is called only for an event that is not plainly right.';
