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
    got record;
begin
    relation := format('%I.%I', s.schema_name, s.table_name)::regclass;
    got := tidemark.source_look(relation, tidemark.source_query(s, 1, 'forward', 'next'),
        coalesce(c.watermark_ts, '-infinity'), c.watermark_id, plan.horizon, 1, holes => c.holes + c.fenced);
    if got.found_ then
        return 'rows';
    elsif s.safety = 'sequence' and tidemark.source_behind(s, relation, c.watermark_id::bigint) is not null then
        return 'changed';
    elsif sweeping then
        -- Only a sweep reads rows without a usable timestamp.
        foreach step in array array['null', '-infinity', 'infinity'] loop
            got := tidemark.source_look(relation, tidemark.source_query(s, 1, step, 'next'), rows_limit => 1);
            if got.found_ then
                return 'sweep';
            end if;
        end loop;
    end if;
    return null;
exception
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
