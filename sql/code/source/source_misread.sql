create or replace function tidemark.source_misread(
    plan tidemark.source_plan, kind text, detail text, message text default null)
returns tidemark.source_plan
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if kind not in ('source_changed', 'source_misconfigured', 'cursor_watermark_regression') then
        raise exception using errcode = 'TM005', message = format('a worker cannot report "%s"', source_misread.kind);
    end if;
    return tidemark.source_hold(source_misread.plan, source_misread.kind, source_misread.detail,
                                source_misread.message);
end
$$;
comment on function tidemark.source_misread(tidemark.source_plan, text, text, text) is
    'Holds the worker, with a finding, for a problem that it meets while it reads: source_changed, '
    'source_misconfigured or cursor_watermark_regression. message: the text of an error, which may quote a row '
    '(tidemark.finding_detail).';
grant execute on function tidemark.source_misread(tidemark.source_plan, text, text, text) to tidemark_executor;
