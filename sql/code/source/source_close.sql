create or replace function tidemark.source_close(
    epoch bigint,
    plan tidemark.source_plan,
    read tidemark.source_page,
    failed tidemark.failed_row[],
    splits integer,
    began timestamptz)
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    summary jsonb;
    gate text;
begin
    summary := tidemark.source_settle(source_close.plan, source_close.epoch, source_close.read, source_close.failed,
                                      splits, began, tidemark.source_recount(source_close.plan, source_close.read));
    -- The last look at the gates comes after the last effect (tidemark.source_pass). The caller rolls back.
    gate := tidemark.closed_gate((plan.worker).worker);
    if gate is not null then
        raise exception using errcode = 'TM009', message = gate;
    end if;
    return summary;
end
$$;
comment on function tidemark.source_close(bigint, tidemark.source_plan, tidemark.source_page, tidemark.failed_row[],
                                          integer, timestamptz) is
    'Second half of a pass by a Go program: records the outcome of the page and moves the cursor. Returns the summary '
    'of the pass. Raises TM009 (a gate was closed meanwhile), TM011.';
grant execute on function tidemark.source_close(bigint, tidemark.source_plan, tidemark.source_page,
                                                tidemark.failed_row[], integer, timestamptz) to tidemark_executor;
