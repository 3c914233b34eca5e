create or replace function tidemark.command_dry_run(call jsonb, overdue boolean)
returns json
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    document json;
    done boolean := false;
begin
    if overdue then
        document := tidemark.command_document(call, 'failed_retryable', 'runtime.timeout', 'the command took too long',
                                              clock_timestamp(), null, 1);
    else
        begin
            document := tidemark.command_try(call || '{"dry_run": true}');
            done := true;
            raise exception using errcode = 'TM009', message = 'the dry run is rolled back';
        exception when others then
            if not done then
                raise;
            end if;
        end;
    end if;
    insert into tidemark.command_record (why, service, event_id, idempotency_key, topic, topic_id, partition, "offset",
                                         record_at, key, value, headers, document, call)
    values ('dry_run', call ->> 'service', (call ->> 'event_id')::uuid, call ->> 'idempotency_key', call ->> 'topic',
            call ->> 'topic_id', (call ->> 'partition')::integer, (call ->> 'offset')::bigint,
            (call ->> 'record_at')::timestamptz, decode(call -> 'raw' ->> 'key', 'base64'),
            decode(call -> 'raw' ->> 'value', 'base64'), call -> 'raw' -> 'headers', document, call - 'raw')
    on conflict (topic_id, partition, "offset", why) where topic_id is not null do nothing;
    return document;
end
$$;
comment on function tidemark.command_dry_run(jsonb, boolean) is
    'Executes a checked command, rolls it back, and keeps what it would have answered, with the raw record, in '
    'tidemark.command_record. overdue: it took too long before, and is not executed. Returns the document.';
