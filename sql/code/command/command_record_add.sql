create or replace function tidemark.command_record_add(why text, call jsonb, value bytea, document json)
returns bigint
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
    insert into tidemark.command_record as r (why, service, event_id, idempotency_key, topic, topic_id, partition,
                                              "offset", record_at, key, value, headers, document)
    values (why, call ->> 'service', (call ->> 'event_id')::uuid, call ->> 'idempotency_key', call ->> 'topic',
            call ->> 'topic_id', (call ->> 'partition')::integer, (call ->> 'offset')::bigint,
            (call ->> 'record_at')::timestamptz, decode(call -> 'raw' ->> 'key', 'base64'),
            coalesce(command_record_add.value, decode(call -> 'raw' ->> 'value', 'base64')), call -> 'raw' -> 'headers',
            document)
    on conflict (topic_id, partition, "offset", why) where topic_id is not null do nothing
    returning r.id
$$;
comment on function tidemark.command_record_add(text, jsonb, bytea, json) is
    'Keeps the raw record of a command, or value in its place, and returns its number. Null: it is kept already.';
