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
    record_id := tidemark.command_record_add('dead_letter', call, command_letter.value, null);
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
