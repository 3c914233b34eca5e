create or replace function tidemark.command_letter(
    call jsonb, code text, message text, sqlstate_ text, attempts integer, value bytea)
returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    record_id bigint;
    replays_ constant integer := coalesce((call ->> 'replays')::integer, 0);
    worker_id constant integer := (select w.id from tidemark.worker w where w.worker = 'commands');
    at constant timestamptz := clock_timestamp();
    known constant boolean := exists (select from tidemark.service s where s.service = call ->> 'service');
begin
    insert into tidemark.command_record as r (why, service, event_id, idempotency_key, topic, topic_id, partition,
                                              "offset", record_at, key, value, headers, call, replays)
    values ('dead_letter', call ->> 'service', (call ->> 'event_id')::uuid, call ->> 'idempotency_key',
            call ->> 'topic', call ->> 'topic_id', (call ->> 'partition')::integer, (call ->> 'offset')::bigint,
            (call ->> 'record_at')::timestamptz, decode(call -> 'raw' ->> 'key', 'base64'),
            coalesce(command_letter.value, decode(call -> 'raw' ->> 'value', 'base64')), call -> 'raw' -> 'headers',
            case when call ? 'fingerprint'
                then call - array['raw', 'parked', 'failed', 'replays', 'first_failed_at'] end,
            replays_)
    -- A replay has taken it up, and it has failed again.
    on conflict (topic_id, partition, "offset", why) where topic_id is not null do update
    set recorded_at = clock_timestamp(), replayed_at = null, replays = excluded.replays
    where r.replayed_at is not null and excluded.replays > r.replays
    returning r.id into record_id;
    if record_id is null or worker_id is null then
        return record_id; -- a redelivery; or no service was ever registered
    end if;
    insert into tidemark.dead_letter (idempotency_key, worker_id, source, item_id, item_ts, event_snapshot, error_code,
                                      error_detail, attempts)
    values (tidemark.command_letter_key(record_id, replays_), worker_id, 'commands', record_id::text,
            (call ->> 'record_at')::timestamptz, call - 'raw', command_letter.code, command_letter.message,
            greatest(command_letter.attempts, 1));
    if known then
        perform tidemark.command_publish('dead_letter', array[call], array[jsonb_build_object(
            'reason', command_letter.code, 'class', split_part(command_letter.code, '.', 1),
            'message', command_letter.message, 'sqlstate', command_letter.sqlstate_,
            'attempts', command_letter.attempts, 'first_failed_at', coalesce(call -> 'first_failed_at', to_jsonb(at)),
            'failed_at', at, 'topic', call -> 'topic', 'partition', call -> 'partition', 'offset', call -> 'offset',
            'timestamp', call -> 'record_at', 'event_id', call -> 'event_id', 'service', call -> 'service',
            'command', call -> 'command', 'replay_count', replays_, 'record', record_id)]);
    end if;
    return record_id;
end
$$;
comment on function tidemark.command_letter(jsonb, text, text, text, integer, bytea) is
    'Makes the dead letter of a command: the raw record in tidemark.command_record, whose number it returns, a row of '
    'tidemark.dead_letter, and an event commands/dead_letter.<service>, from which a daemon makes a record of Kafka '
    'again: its bytes, and each other member of the event as a header x-dlq-*. first_failed_at of call: when it was '
    'parked. Null: the record has its dead letter already.';
