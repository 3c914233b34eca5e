-- Not a security definer: the table is read, and the handler called, with the rights of the role that runs the worker.
-- The page is read with this search_path, so that no operator or function of another schema replaces a built-in one.
-- The handler has the role's own path.
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
    row_security constant text := current_setting('row_security');
    statement text;
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
    statement := tidemark.source_query(s, (plan.worker).shards, step, act,
        (plan.worker).coalesce_window is not null and cardinality(s.group_key) > 0,
        -- An event has no other columns: an unreadable value in these does not refuse the row.
        case act when 'emit' then s.key_columns || (plan.worker).payload_columns || s.id_column
             else source_read.columns_ end);
    perform tidemark.source_guard(plan.relation);
    perform set_config('row_security', 'off', true);
    execute statement into page
    using coalesce(from_ts, '-infinity'), from_id, plan.horizon, rows_limit, source_read.ids, c.shard,
          case when step = 'sweep' then coalesce((plan.sweep ->> 'xmin')::bigint, 0)
               else coalesce((plan.sweep ->> 'segment_xmin')::bigint, 0) end,
          c.holes + c.fenced, c.watermark_ts, c.watermark_id, (plan.worker).id,
          case when plan.step = 'sweep' then (plan.sweep ->> 'next_xmin')::bigint
               else coalesce((plan.sweep ->> 'xmin')::bigint, 0) end, plan.epoch;
    perform set_config('row_security', row_security, true);
    if act not in ('ids', 'every', 'rows', 'kept', 'text') then
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
    'Reads the page that the plan names, and hands it on in the same statement; act as in tidemark.source_query. ids: '
    'only these rows of the page. columns_: JSON shows only these columns (null: all; for an emit worker those of its '
    'events).';
grant execute on function tidemark.source_read(tidemark.source_plan, text, text[], text[]) to tidemark_executor;
