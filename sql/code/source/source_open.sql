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
    out ids text[],
    out times timestamptz[],
    out items text[],
    out refused tidemark.failed_row[],
    out splits integer)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    next tidemark.source_plan :=
        tidemark.source_plan(source_open.worker, source_open.source, source_open.shard, source_open.epoch,
                             source_open.page, source_open.lease);
    got tidemark.source_page;
    style constant text := current_setting('datestyle');
    part record;
    problem text;
    kind text;
    code text;
    message text;
begin
    status := next.status;
    detail := next.detail;
    refused := '{}';
    splits := 0;
    if status <> 'go' then
        perform tidemark.source_rest(next);
        return;
    end if;
    begin
        kind := 'source_changed';
        select r.problem, r.gone into problem, next.gone from tidemark.source_restarted(next) r;
        if problem is null then
            begin
                next.rows_limit := tidemark.source_budget(next);
                got := tidemark.source_read(next, 'rows');
            exception when others or assert_failure then
                if tidemark.is_transient(sqlstate) then
                    raise;
                end if;
                splits := 1;
            end;
            while got is null loop
                -- Halve the page, down to the row that cannot be read as jsonb. The rows that can be read now are the
                -- page.
                part := tidemark.source_ids(next);
                got := part.page;
                select part.failed || s.failed, splits + part.splits + s.splits into refused, splits
                from tidemark.source_split(next, 'rows', array(select jsonb_array_elements_text(got.result))) s;
                begin
                    got.result := (tidemark.source_read(next, 'rows', array(
                        select i from jsonb_array_elements_text(got.result) with ordinality r (i, ord)
                        where i <> all (select f.item_id from unnest(refused) f) order by ord))).result;
                exception when program_limit_exceeded then
                    -- Each row can be read alone, but not all of them together.
                    next.rows_limit := got.examined / 2;
                    got := null;
                end;
            end loop;
            problem := case when next.step = 'forward' and (next.source).safety = 'sequence'
                            then tidemark.source_behind(next.source, next.relation, got.last_id::bigint) end;
        end if;
    exception
        when query_canceled then
            get stacked diagnostics message = message_text;
            if coalesce(tidemark.time_left() > interval '0', true) then
                -- An operator canceled the pass.
                raise;
            end if;
            status := 'cut';
            detail := tidemark.source_cut(next, source_open.epoch, null, message) ->> 'detail';
            return;
        when others then
            if not tidemark.source_is_misconfigured(sqlstate) then
                raise;
            end if;
            get stacked diagnostics code = returned_sqlstate, message = message_text;
            problem := tidemark.source_error(next, code);
            kind := 'source_misconfigured';
    end;
    if problem is not null then
        next := tidemark.source_misread(next, kind, problem, message);
        status := next.status;
        detail := next.detail;
        perform tidemark.source_rest(next);
        return;
    end if;
    select array_agg(r ->> 'id'), array_agg((r ->> 'ts')::timestamptz), array_agg((r -> 'row')::text)
    into ids, times, items from jsonb_array_elements(got.result) r;
    got.result := null;
    -- As text they have times, which the caller's session reads again: by another style a zone's name may mean two.
    perform set_config('datestyle', 'ISO', true);
    plan := next;
    read := got;
    perform set_config('datestyle', style, true);
end
$$;
comment on function tidemark.source_open(text, text, integer, bigint, integer, interval) is
    'First half of a pass over a source by a Go program. Returns the page as ids, times and items (the rows as JSON), '
    'and plan and read for tidemark.source_close in the same transaction. refused: the rows that could not be read as '
    'jsonb; source_close takes them among its failed rows. splits: how often the page was read again to find these. A '
    'status other than go says why no page is returned: cut, because the statement_timeout ended the reading '
    '(tidemark.source_cut). Raises TM011.';
grant execute on function tidemark.source_open(text, text, integer, bigint, integer, interval) to tidemark_executor;
