create or replace function tidemark.command_hold(call jsonb)
returns json
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    at constant timestamptz := clock_timestamp();
    document json;
begin
    if tidemark.command_claim_add(call, tidemark.command_of(call), 'failed_retryable', null, null, 0, at) then
        perform tidemark.command_park(call, at, 0, null);
        document := tidemark.command_document(call, 'failed_retryable', null, 'waits until the command is on', at,
                                              null, 0);
    else
        document := tidemark.command_asked(call);
    end if;
    if document ->> 'status' <> 'redelivered' then
        perform tidemark.command_publish('result', array[call], array[document::jsonb]);
    end if;
    return document;
end
$$;
comment on function tidemark.command_hold(jsonb) is
    'Parks a checked command that is off: tidemark.command_retry takes it up when it is on. Returns the result '
    'document, which it emits; of a key that was claimed before, that of tidemark.command_asked.';
