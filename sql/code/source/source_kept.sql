-- Not a security definer: the table is read with the rights of the role that runs the worker.
--
-- Only reading shows which column is at fault: json can hold values that jsonb cannot, a value may be too large, the
-- expression of a virtual column may fail. So the function tries halves of the columns.
create or replace function tidemark.source_kept(plan tidemark.source_plan, id text)
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    columns_ constant text[] := array(select a.attname::text from pg_attribute a
                                      where a.attrelid = plan.relation and a.attnum > 0 and not a.attisdropped
                                      order by a.attnum);
    stack integer[] := array[1, cardinality(columns_)];
    first integer;
    last integer;
    part tidemark.source_page;
    item jsonb;
    kept jsonb := '{}';
    unheld jsonb := '{}';
    code text;
begin
    while cardinality(stack) > 0 loop
        first := stack[cardinality(stack) - 1];
        last := stack[cardinality(stack)];
        stack := stack[: cardinality(stack) - 2];
        begin
            part := tidemark.source_read(plan, 'kept', array[source_kept.id], columns_[first : last]);
            item := part.result -> 0;
            if item is null then
                return null;
            end if;
            kept := kept || (item -> 'row');
        exception when others or assert_failure then
            get stacked diagnostics code = returned_sqlstate;
            if tidemark.is_transient(code) then
                raise;
            elsif first < last then
                stack := stack || array[(first + last) / 2 + 1, last, first, (first + last) / 2];
            else
                unheld := unheld || jsonb_build_object(columns_[first], code);
                begin
                    part := tidemark.source_read(plan, 'text', array[source_kept.id], columns_[first : first]);
                    kept := kept || (part.result -> 0 -> 'row');
                exception when others or assert_failure then
                    if tidemark.is_transient(sqlstate) then
                        raise;
                    end if;
                end;
            end if;
        end;
    end loop;
    -- The empty name is free: no column has it.
    return item
           || jsonb_build_object('row', kept || case when unheld = '{}' then '{}'
                                                     else jsonb_build_object('', unheld) end);
end
$$;
comment on function tidemark.source_kept(tidemark.source_plan, text) is
    'A row of a source as jsonb ({"id", "ts", "row"}), even if it does not fit into jsonb: a column that does not fit '
    'appears as its text or is missing. The member "" of the row names such columns, with the SQLSTATE. Null: the row '
    'is gone.';
grant execute on function tidemark.source_kept(tidemark.source_plan, text) to tidemark_executor;
