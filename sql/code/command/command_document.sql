-- In PL/pgSQL, as what every command calls: an SQL function that is not inlined is planned at each call.
create or replace function tidemark.command_document(
    call jsonb, status text, error_code text, error_message text, processed_at timestamptz, result json,
    attempts integer, original_event_id uuid default null, original_status text default null)
returns json
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    -- The eight members of S3 come first.
    return json_build_object(
        'event_id', call ->> 'event_id', 'service', call ->> 'service', 'command', call ->> 'command',
        'status', status, 'error_code', error_code, 'error_message', error_message,
        'processed_at', to_char(processed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
        'trace_id', call ->> 'trace_id', 'command_version', (call ->> 'command_version')::integer,
        'idempotency_key', call ->> 'idempotency_key', 'result', result, 'attempts', attempts,
        'original_event_id', original_event_id, 'original_status', original_status);
end
$$;
comment on function tidemark.command_document(jsonb, text, text, text, timestamptz, json, integer, uuid, text) is
    'The result document of a command: the eight members of S3, then command_version, idempotency_key, result, '
    'attempts, original_event_id and original_status.';
