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
        document := tidemark.command_document(call, 'failed_retryable', 'runtime.timeout',
                                              'the command did not come to an end', clock_timestamp(), null, 1);
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
    perform tidemark.command_record_add('dry_run', call, null, document);
    return document;
end
$$;
comment on function tidemark.command_dry_run(jsonb, boolean) is
    'Executes a checked command, rolls it back, and keeps what it would have answered, with the raw record, in '
    'tidemark.command_record. overdue: it did not come to an end before, and is not executed. Returns the document.';
