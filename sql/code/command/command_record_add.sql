create or replace function tidemark.command_record_add(why text, call jsonb, value bytea, document json)
returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    key_ constant bytea := decode(call -> 'raw' ->> 'key', 'base64');
    value_ constant bytea := coalesce(command_record_add.value, decode(call -> 'raw' ->> 'value', 'base64'));
    made bigint;
begin
    for i in 1..2 loop
        insert into tidemark.command_record as r (why, service, event_id, idempotency_key, topic, topic_id, partition,
                                                  "offset", record_at, key, value, headers, document, call, replays)
        values (why, call ->> 'service', (call ->> 'event_id')::uuid, call ->> 'idempotency_key', call ->> 'topic',
                call ->> 'topic_id', (call ->> 'partition')::integer, (call ->> 'offset')::bigint,
                (call ->> 'record_at')::timestamptz, key_, value_, call -> 'raw' -> 'headers', document,
                case when call ? 'fingerprint'
                    then call - array['raw', 'parked', 'failed', 'replays', 'first_failed_at'] end,
                coalesce((call ->> 'replays')::integer, 0))
        -- A replay has taken it up, and it has failed again.
        on conflict (topic_id, partition, "offset", why) where topic_id is not null do update
        set recorded_at = clock_timestamp(), replayed_at = null, replays = excluded.replays
        where r.replayed_at is not null and excluded.replays > r.replays
        returning r.id into made;
        exit when made is not null;
        -- Kafka has lost the record that is kept, and given its offset to this one.
        update tidemark.command_record r set topic_id = null
        where r.topic_id = command_record_add.call ->> 'topic_id'
          and r.partition = (command_record_add.call ->> 'partition')::integer
          and r."offset" = (command_record_add.call ->> 'offset')::bigint and r.why = command_record_add.why
          and r.erased_at is null and (r.key, r.value) is distinct from (key_, value_);
        exit when not found;
    end loop;
    return made;
end
$$;
comment on function tidemark.command_record_add(text, jsonb, bytea, json) is
    'Keeps the raw record of a command, or value in its place, and returns its number. Null: it is kept already. '
    'Another record that is kept for the same place of Kafka loses its place (topic_id).';
