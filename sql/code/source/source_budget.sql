-- Not a security definer: it reads the table as the worker does.
--
-- A page ends before its rows exceed batch.max_bytes, and has at least one row. The size is added up column by column:
-- measuring a whole row would fetch its out-of-line values.
create or replace function tidemark.source_budget(plan tidemark.source_plan)
returns integer
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    max_bytes constant bigint := tidemark.page_bytes();
    rows_limit constant integer := plan.rows_limit;
    wide boolean;
    mean double precision;
    sizes text;
    fits tidemark.source_page;
begin
    select bool_or(pg_relation_size(c.reltoastrelid) > 0),
           sum(pg_table_size(c.oid)) / nullif(sum(greatest(c.reltuples, 0)), 0)
    into wide, mean
    from pg_class c where c.oid = any (tidemark.relation_tree(plan.relation)) and c.relkind = 'r';
    -- A row without out-of-line columns is no larger than a block.
    if not coalesce(wide, false) and rows_limit * current_setting('block_size')::bigint <= 3 * max_bytes then
        return rows_limit;
    elsif plan.step = 'retry' then
        -- Failed rows are few, and were measured when they were first read.
        return greatest(1, least(rows_limit, max_bytes / greatest(1, coalesce(mean, 1))));
    end if;
    select string_agg(case
        when a.attlen > 0 then a.attlen::text
        -- A compressed value is larger for the handler. Of these types the server knows the size without compression.
        when a.atttypid = any (array['text', 'character varying', 'bytea']::regtype[])
            then format('coalesce(octet_length(tidemark.as_is(tidemark_row.%I, null::%s)), 0)', a.attname,
                        format_type(a.atttypid, null))
        when a.attstorage in ('x', 'm') then format('coalesce(4 * pg_column_size(tidemark_row.%I), 0)', a.attname)
        else format('coalesce(pg_column_size(tidemark_row.%I), 0)', a.attname) end || '::bigint',
                      ' + ' order by a.attnum)
    into sizes
    from pg_attribute a where a.attrelid = plan.relation and a.attnum > 0 and not a.attisdropped;
    fits := tidemark.source_read(plan, format(E'\x02%s\x02(%s)', max_bytes, sizes));
    -- Allow a few more rows than were found, in case more have arrived.
    return case when fits.examined < fits.taken then greatest(1, fits.examined)
                else least(rows_limit, fits.taken + 16) end;
end
$$;
comment on function tidemark.source_budget(tidemark.source_plan) is
    'How many rows the next page of a source may have: as many as fit into the setting batch.max_bytes, at least one, '
    'and at most the rows_limit of the plan.';
grant execute on function tidemark.source_budget(tidemark.source_plan) to tidemark_executor;
