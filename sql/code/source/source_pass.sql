-- The life of a page of another role's table, top to bottom, in one transaction: the handler's writes, their record and
-- the cursor commit together.
create or replace function tidemark.source_pass(
    worker text,
    source text,
    shard integer,
    epoch bigint,
    page integer default null,
    lease interval default null)
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    began constant timestamptz := clock_timestamp();
    plan tidemark.source_plan;
    act text;
    -- Where rows may hang, the pass determines the suspects before it hands them over.
    careful boolean;
    read tidemark.source_page;
    got record;
    failed tidemark.failed_row[] := '{}';
    splits integer := 0;
    problem text;
    gate text;
    code text;
    message text;
    kind text;
    summary jsonb;
begin
    plan := tidemark.source_plan(source_pass.worker, source_pass.source, source_pass.shard, source_pass.epoch,
                                 source_pass.page, source_pass.lease);
    if plan.status <> 'go' then
        return tidemark.source_rest(plan);
    end if;
    if tidemark.time_left() <= interval '0' then
        plan.status := 'waiting';
        plan.detail := 'the statement_timeout of this statement is used up: call it in a statement of its own';
        return tidemark.source_rest(plan);
    end if;
    if (plan.cursor).phase = 'seeding' then
        -- Do not wait for the disk on each page of a first sweep: its rows can all be read again, and a crash rolls
        -- back a page's effects together with its cursor.
        perform set_config('synchronous_commit', 'off', true);
    end if;
    act := coalesce(plan.call, (plan.worker).handler);
    if act = 'go' then
        raise exception using errcode = 'TM005',
            message = format('worker %s belongs to a Go program and is not run from here', source_pass.worker),
            hint = 'Start the program.';
    end if;

    careful := plan.suspects is not null or plan.step = 'retry';
    begin
        select r.problem, r.gone into problem, plan.gone from tidemark.source_restarted(plan) r;
        if problem is not null then
            raise exception using errcode = 'TM012', message = problem, constraint = 'source_changed';
        end if;
        begin
            if act not like E'\x03%' then
                plan.rows_limit := tidemark.source_budget(plan);
            end if;
            if not careful then
                read := tidemark.source_read(plan, act);
            end if;
        exception when others or assert_failure then
            get stacked diagnostics code = returned_sqlstate, message = message_text;
            if tidemark.is_transient(code) then
                raise;
            end if;
            splits := 1;
        end;
        if read is null then
            -- Halve the page, down to the row at fault. The rows that can be read now are the page: the first try has
            -- left nothing.
            got := tidemark.source_ids(plan);
            read := got.page;
            if plan.suspects is not null and read.examined > 1 and read.examined < plan.rows_limit then
                -- The page has fewer rows than the cut page may have had. These are the suspects.
                plan.suspects := read.examined;
                plan.rows_limit := tidemark.source_part(read.examined);
                got := tidemark.source_ids(plan);
                read := got.page;
            end if;
            select got.failed || s.failed, splits + got.splits + s.splits, s.result into failed, splits, read.result
            from tidemark.source_split(plan, act, array(select jsonb_array_elements_text(read.result))) s;
        end if;
        if plan.step = 'forward' and (plan.source).safety = 'sequence' then
            problem := tidemark.source_behind(plan.source, plan.relation, read.last_id::bigint);
            if problem is not null then
                -- The handler has the rows already: roll its work back.
                raise exception using errcode = 'TM012', message = problem, constraint = 'source_changed';
            end if;
        end if;
        summary := tidemark.source_settle(plan, source_pass.epoch, read, failed, splits, began,
                                          tidemark.source_recount(plan, read));
        -- The last look at the gates comes after the last effect. The count can take long, and a pause that locks the
        -- cursor makes the settle wait for it.
        gate := tidemark.closed_gate(source_pass.worker);
        if gate is not null then
            raise exception using errcode = 'TM009', message = gate;
        end if;
        return summary;
    exception
        when sqlstate 'TM009' then
            get stacked diagnostics gate = message_text;
            plan.status := 'closed';
            plan.detail := gate;
            return tidemark.source_rest(plan);
        when sqlstate 'TM012' then
            get stacked diagnostics message = message_text, kind = constraint_name;
            return tidemark.source_rest(tidemark.source_misread(
                plan, coalesce(nullif(kind, ''), 'cursor_watermark_regression'), message));
        when query_canceled then
            get stacked diagnostics message = message_text;
            if coalesce(tidemark.time_left() > interval '0', true) then
                -- An operator canceled the pass.
                raise;
            end if;
            return tidemark.source_cut(plan, source_pass.epoch, read.examined, message);
        when others then
            if not tidemark.source_is_misconfigured(sqlstate) then
                raise;
            end if;
            -- No row caused the error: an operator must repair the table, the function or the rights. A handler can
            -- raise any of these codes, with any message.
            get stacked diagnostics code = returned_sqlstate, message = message_text;
            return tidemark.source_rest(tidemark.source_misread(
                plan, 'source_misconfigured', tidemark.source_error(plan, code), message));
    end;
end
$$;
comment on function tidemark.source_pass(text, text, integer, bigint, integer, interval) is
    'One pass over a source by the owner of the lease epoch, in a transaction of its own: reads a page, hands it to '
    'the handler, records the outcome and moves the cursor. page: maximum number of rows (null: the worker''s '
    'page_size). lease: how long the lease lasts after the pass (null: unchanged). A page that the statement_timeout '
    'ends is rolled back, and the next page has fewer rows (status cut). Returns what tidemark.worker_run returns. '
    'Raises TM011.';
grant execute on function tidemark.source_pass(text, text, integer, bigint, integer, interval) to tidemark_executor;
