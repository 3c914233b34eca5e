create or replace function tidemark.command_live(calls jsonb[], positions integer[], way text)
returns text[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    started constant timestamptz := clock_timestamp();
    document json;
    got record;
begin
    if way = 'overdue' then
        document := tidemark.command_fail(calls[1], 'outage', 'runtime.timeout', 'the command did not come to an end',
                                          '57014', 1);
    elsif way = 'alone' then
        document := tidemark.command_try(calls[1]);
    end if;
    if document is not null then
        return array[format('%s|%s|%s', document ->> 'status', document ->> 'error_code', case way when 'alone'
            then round(1000 * extract(epoch from clock_timestamp() - started), 3) end)];
    end if;
    got := tidemark.command_effects(calls, positions);
    return array(
        -- What was processed has no error.
        select concat(d.status, '|', case when d.status <> 'processed' then d.document ->> 'error_code' end, '|',
                      d.took)
        from unnest(got.told, got.documents, got.took) d (status, document, took));
end
$$;
comment on function tidemark.command_live(jsonb[], integer[], text) is
    'Runs live commands in order, for tidemark.command_pass, which has asked for their gates: tidemark.command_effects '
    'with their positions in the pass. way alone: one command, whose failure is recorded; overdue: one that did not '
    'come to an end, which is parked without being run. Returns of each status|reason code|milliseconds that it took, '
    'if it ran.';
