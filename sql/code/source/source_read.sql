-- Not a security definer: the table is read, and the handler called, with the rights of the role that runs the worker.
-- The page is read with this search_path, so that no operator or function of another schema replaces a built-in one,
-- and in a read-only subtransaction (tidemark.source_look). The handler has the role's own path, and may write.
create or replace function tidemark.source_read(
    plan tidemark.source_plan,
    act text,
    ids text[] default null,
    columns_ text[] default null)
returns tidemark.source_page
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    s constant tidemark.source := plan.source;
    c constant tidemark.worker_cursor := plan.cursor;
    step constant text := case
        when plan.step = 'retry' then 'retry'
        when source_read.ids is not null then 'ids'
        when plan.step = 'sweep'
             then case plan.sweep ->> 'segment' when 'window' then 'sweep' else plan.sweep ->> 'segment' end
        else plan.step end;
    from_ts timestamptz := c.watermark_ts;
    from_id text := c.watermark_id;
    rows_limit integer := plan.rows_limit;
    page tidemark.source_page;
    bounded constant boolean := act like E'\x03%';
    settled bigint;
    part record;
    result jsonb;
    statement text;
    read record;
    deferred text;
begin
    if plan.step = 'sweep' then
        from_id := plan.sweep ->> 'id';
        from_ts := coalesce((plan.sweep ->> 'ts')::timestamptz,
            -- A row that came since the last sweep may be this far behind the watermark of that time.
            case when (plan.sweep ->> 'mark')::timestamptz >= timestamptz '4713-01-01 00:00:00+00 BC' + s.sweep_window
                 then (plan.sweep ->> 'mark')::timestamptz - s.sweep_window end, '-infinity');
    elsif s.safety in ('sequence', 'capture') and not plan.fence_closed
        and (select count(*) from unnest(c.holes + c.fenced)) >= (plan.worker).hole_limit then
        -- Too many numbers below are open: read no further. Open numbers that have appeared are still read.
        from_id := '9223372036854775807';
    end if;
    if bounded and step = 'forward' and s.safety = 'sequence' then
        settled := tidemark.source_settled(s, plan.relation);
    end if;
    statement := tidemark.source_query(s, (plan.worker).shards, step, case when bounded then 'keys' else act end,
        (plan.worker).coalesce_window is not null and cardinality(s.group_key) > 0,
        -- An event has no other columns: an unreadable value in these does not refuse the row.
        case act when 'emit' then s.key_columns || (plan.worker).payload_columns || s.id_column
             else source_read.columns_ end);
    read := tidemark.source_look(plan.relation, statement, coalesce(from_ts, '-infinity'), from_id, plan.horizon,
        rows_limit, source_read.ids, c.shard,
        case when step = 'sweep' then coalesce((plan.sweep ->> 'xmin')::bigint, 0)
             else coalesce((plan.sweep ->> 'segment_xmin')::bigint, 0) end,
        c.holes + c.fenced, c.watermark_ts, c.watermark_id, (plan.worker).id,
        case when plan.step = 'sweep' then (plan.sweep ->> 'next_xmin')::bigint
             else coalesce((plan.sweep ->> 'xmin')::bigint, 0) end);
    if bounded or act in ('ids', 'every', 'rows', 'emit', 'kept', 'text') or act like E'\x02%' then
        page := read;
    else
        -- The array of rows has another type for each table: a name for it stands only in a dynamic statement.
        execute format('
            select r.examined, r.taken, r.fresh, r.last_ts, r.last_id, r.late, r.numbers,
                case when r.taken > 0 then tidemark.source_call(%L, %L, %L, r.rows_) end,
                r.ledger_ids, r.ledger_xids, r.counts, r.times
            from unnest(array[$1]) r (examined integer, taken integer, fresh integer, last_ts timestamptz, last_id text,
                late integer, numbers bigint[], rows_ %I.%I[], ledger_ids text[], ledger_xids text[], counts jsonb,
                times timestamptz[])',
            'select ' || replace(act, E'\x01', '$1'), tidemark.default_search_path(), current_setting('row_security'),
            s.schema_name, s.table_name)
        into page using read;
    end if;
    if bounded then
        for part in select * from tidemark.source_bounds(plan, page, step = 'forward', settled) loop
            result := tidemark.jsonb_add(case jsonb_typeof(result) when 'object' then result - 'groups' else result end,
                tidemark.source_call_bounds('select ' || substr(act, 2), tidemark.default_search_path(),
                    current_setting('row_security'), part.after_ts, part.after_id, part.to_ts, part.to_id));
        end loop;
        page.result := result;
    elsif act = 'emit' then
        page.result := tidemark.source_emit((plan.worker).id, s.source, c.shard, plan.epoch, page.result);
    end if;
    if act not in ('ids', 'every', 'rows', 'kept', 'text') and act not like E'\x02%' then
        -- A handler may defer a constraint to the commit, where it would fail without naming a row.
        deferred := tidemark.deferred_constraints();
        if deferred is not null then
            execute 'set constraints ' || deferred || ' immediate';
            execute 'set constraints ' || deferred || ' deferred';
        end if;
    end if;
    return page;
end
$$;
comment on function tidemark.source_read(tidemark.source_plan, text, text[], text[]) is
    'Reads the page that the plan names, and hands it to the handler; act as in tidemark.source_query. ids: '
    'only these rows of the page. columns_: JSON shows only these columns (null: all; for an emit worker those of its '
    'events).';
grant execute on function tidemark.source_read(tidemark.source_plan, text, text[], text[]) to tidemark_executor;
