create or replace function tidemark.command_try(call jsonb)
returns json
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    started constant timestamptz := clock_timestamp();
    tries constant integer := 3;
    patience constant interval := '2 seconds';
    failed integer := 0;
    ran boolean := false;
    document json;
    state text;
    message text;
    code text;
    kind text;
begin
    perform tidemark.command_gate_check(jsonb_build_array(call));
    loop
        begin
            select b.document into document
            from tidemark.command_batch(jsonb_build_array(call || jsonb_build_object('failed',
                coalesce((call ->> 'failed')::integer, 0) + failed))) b;
            ran := true;
            exit;
        exception when query_canceled or assert_failure or others then
            get stacked diagnostics state = returned_sqlstate, message = message_text, code = constraint_name,
                kind = pg_datatype_name;
            if kind not in ('retryable', 'operator', 'outage', 'terminal') then
                raise;
            end if;
        end;
        failed := failed + 1;
        continue when kind in ('retryable', 'outage') and code <> 'runtime.timeout' and failed < tries
            and clock_timestamp() - started < patience;
        if call ? 'dry_run' then
            return tidemark.command_document(call, case kind when 'terminal' then 'failed_terminal'
                else 'failed_retryable' end, code, message, clock_timestamp(), null, failed);
        end if;
        document := tidemark.command_fail(call, kind, code, message, state, failed);
        exit when document is not null;
    end loop;
    if ran then
        perform tidemark.command_gate_check(jsonb_build_array(call));
    end if;
    return document;
end
$$;
comment on function tidemark.command_try(jsonb) is
    'Runs one checked command: a batch of one, up to three times within two seconds if the error can heal; then its '
    'failure is recorded, after its effect is rolled back. Returns the result document. Raises TM009 where a gate is '
    'closed, or is by the time that it ran.';
