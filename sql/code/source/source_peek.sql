-- Whether the next pass would read a row of the source's table. It reads the first row of the statement that a pass
-- uses. Not a security definer: the table is read with the rights of the role that runs the worker.
create or replace function tidemark.source_peek(plan tidemark.source_plan, sweeping boolean)
returns text
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    s constant tidemark.source := plan.source;
    c constant tidemark.worker_cursor := plan.cursor;
    relation regclass;
    step text;
    found_ boolean;
    why text;
begin
    relation := format('%I.%I', s.schema_name, s.table_name)::regclass;
    perform tidemark.source_lock(relation);
    if tidemark.source_denied(relation) is not null then
        why := 'unreadable';
    else
        execute tidemark.source_query(s, 1, 'forward', 'next') into found_
        using coalesce(c.watermark_ts, '-infinity'), c.watermark_id, plan.horizon, 1, null, null, null,
              c.holes + c.fenced;
        why := case when found_ then 'rows' end;
        if why is null and s.safety = 'sequence'
           and tidemark.source_behind(s, relation, c.watermark_id::bigint) is not null then
            why := 'changed';
        end if;
        if why is null and sweeping then
            perform tidemark.source_guard(relation);
            -- Only a sweep reads rows without a usable timestamp.
            foreach step in array array['null', '-infinity', 'infinity'] loop
                execute tidemark.source_query(s, 1, step, 'next') into found_ using null, null, null, 1;
                why := case when found_ then 'sweep' end;
                exit when why is not null;
            end loop;
        end if;
    end if;
    -- Raise on purpose: the rollback releases the locks of the table and its parts at once.
    raise exception using errcode = 'TM009', message = 'looked';
exception
    when sqlstate 'TM009' then
        return why;
    when others or assert_failure then
        -- The worker's own pass meets this error again, and records it.
        return 'unreadable';
end
$$;
comment on function tidemark.source_peek(tidemark.source_plan, boolean) is
    'Why a pass by the plan, whose status is go, would find work in the table: rows, changed (the sequence was set '
    'back), unreadable (the table could not be read) or, where a sweep is due (sweeping), sweep. Null: it would find '
    'none. Reads at most one row, and keeps no lock.';
grant execute on function tidemark.source_peek(tidemark.source_plan, boolean) to tidemark_executor;
