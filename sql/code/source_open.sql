-- Not a security definer: the table is read with the rights of the role that runs the worker.
create or replace function tidemark.source_open(
    worker text,
    source text,
    shard integer,
    epoch bigint,
    page integer,
    lease interval,
    out status text,
    out detail text,
    out plan text,
    out read text,
    out items jsonb)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    next tidemark.source_plan := tidemark.source_plan(source_open.worker, source_open.source, source_open.shard, source_open.epoch,
                                                      source_open.page, source_open.lease);
    got tidemark.source_page;
    problem text;
    kind text;
    code text;
    message text;
begin
    status := next.status;
    detail := next.detail;
    if status <> 'go' then
        perform tidemark.source_rest(next);
        return;
    end if;
    begin
        kind := 'source_changed';
        select r.problem, r.gone into problem, next.gone from tidemark.source_restarted(next) r;
        if problem is null then
            next.rows_limit := tidemark.source_budget(next);
            got := tidemark.source_read(next, 'rows');
            problem := case when next.step = 'forward' and (next.source).safety = 'sequence'
                            then tidemark.source_behind(next.source, next.relation, got.last_id::bigint) end;
        end if;
    exception
        when undefined_table or undefined_column or undefined_function or feature_not_supported or insufficient_privilege
          or datatype_mismatch or syntax_error then
            get stacked diagnostics code = returned_sqlstate, message = message_text;
            problem := code || ': ' || tidemark.error_means(code);
            kind := 'source_misconfigured';
    end;
    if problem is not null then
        next := tidemark.source_misread(next, kind, problem, message);
        status := next.status;
        detail := next.detail;
        perform tidemark.source_rest(next);
        return;
    end if;
    items := got.result;
    got.result := null;
    plan := next;
    read := got;
end
$$;
comment on function tidemark.source_open(text, text, integer, bigint, integer, interval) is
'The first half of a pass over a source by a Go program: the page as items [{"id", "ts", "row"}], and plan and read for tidemark.source_close in the same transaction. status other than go: why there is none. Raises TM011.';
revoke all on function tidemark.source_open(text, text, integer, bigint, integer, interval) from public;
grant execute on function tidemark.source_open(text, text, integer, bigint, integer, interval) to tidemark_executor;
