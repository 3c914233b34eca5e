create or replace function tidemark.command_record_add(why text, call jsonb, value bytea, document json)
returns bigint
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
    insert into tidemark.command_record as r (why, service, event_id, idempotency_key, topic, topic_id, partition,
                                              "offset", record_at, key, value, headers, document, call,
                                             replays)
    values (why, call ->> 'service', (call ->> 'event_id')::uuid, call ->> 'idempotency_key', call ->> 'topic',
            call ->> 'topic_id', (call ->> 'partition')::integer, (call ->> 'offset')::bigint,
            (call ->> 'record_at')::timestamptz, decode(call -> 'raw' ->> 'key', 'base64'),
            coalesce(command_record_add.value, decode(call -> 'raw' ->> 'value', 'base64')), call -> 'raw' -> 'headers',
            document,
            case when call ? 'fingerprint'
                then call - array['raw', 'parked', 'failed', 'replays', 'first_failed_at'] end,
            coalesce((call ->> 'replays')::integer, 0))
    -- A replay has taken it up, and it has failed again.
    on conflict (topic_id, partition, "offset", why) where topic_id is not null do update
    set recorded_at = clock_timestamp(), replayed_at = null, replays = excluded.replays
    where r.replayed_at is not null and excluded.replays > r.replays
    returning r.id
$$;
comment on function tidemark.command_record_add(text, jsonb, bytea, json) is
    'Keeps the raw record of a command, or value in its place, and returns its number. Null: it is kept already.';
