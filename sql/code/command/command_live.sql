create or replace function tidemark.command_live(calls jsonb, positions integer[], way text)
returns text[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    call constant jsonb := calls -> 0;
    started constant timestamptz := clock_timestamp();
    document json;
    ran record;
    before timestamptz := started;
    statuses text[] := '{}';
    state text;
    message text;
    detail text;
    code text;
    kind text;
    at text;
begin
    if way = 'overdue' then
        document := tidemark.command_fail(call, 'outage', 'runtime.timeout', 'the command did not come to an end',
                                          '57014', 1);
    elsif way = 'alone' then
        document := tidemark.command_try(call);
    end if;
    if document is not null then
        return array[format('%s|%s|%s', document ->> 'status', document ->> 'error_code', case way when 'alone'
            then round(1000 * extract(epoch from clock_timestamp() - started), 3) end)];
    end if;
    begin
        for ran in
            -- What was processed has no error, and has ended.
            select b.status, case when b.status <> 'processed' then b.document ->> 'error_code' end as code,
                   case b.status when 'processed' then (b.document ->> 'processed_at')::timestamptz end as ended
            from tidemark.command_batch(calls) b
        loop
            statuses := statuses || format('%s|%s|%s', ran.status, ran.code,
                                           round(1000 * extract(epoch from ran.ended - before), 3));
            before := coalesce(ran.ended, before);
        end loop;
        return statuses;
    exception when query_canceled or assert_failure or others then
        get stacked diagnostics state = returned_sqlstate, message = message_text, detail = pg_exception_detail,
            code = constraint_name, kind = pg_datatype_name, at = column_name;
        if kind not in ('retryable', 'operator', 'outage', 'terminal') then
            raise;
        end if;
        raise exception using errcode = state, message = message, detail = detail, datatype = kind, constraint = code,
            column = positions[at::integer]::text;
    end;
end
$$;
comment on function tidemark.command_live(jsonb, integer[], text) is
    'Runs live commands in order, for tidemark.command_passes: as tidemark.command_batch, but the error has the '
    'position in the pass. way alone: one command, whose failure is recorded; overdue: one that did not come to an '
    'end, which is parked without being run. Returns of each status|reason code|milliseconds that it took, if it ran.';
