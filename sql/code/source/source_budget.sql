-- Not a security definer: it reads the table as the worker does.
--
-- A page ends where its rows are more than batch.max_bytes, and has one row at least. The sizes are those of the
-- columns one by one: the size of a whole row would fetch what is stored out of line.
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
    -- A row without columns that are stored out of line is no larger than a block.
    if not coalesce(wide, false) and rows_limit * current_setting('block_size')::bigint <= 3 * max_bytes then
        return rows_limit;
    elsif plan.step = 'retry' then
        -- Rows that failed are few, and were measured when they were read first.
        return greatest(1, least(rows_limit, max_bytes / greatest(1, coalesce(mean, 1))));
    end if;
    select string_agg(case
        when a.attlen > 0 then a.attlen::text
        -- What is compressed is larger for the handler; of these types the server knows by how much.
        when a.atttypid = any (array['text', 'character varying', 'bytea']::regtype[])
            then format('coalesce(octet_length(tidemark.as_is(tidemark_row.%I, null::%s)), 0)', a.attname,
                        format_type(a.atttypid, null))
        when a.attstorage in ('x', 'm') then format('coalesce(4 * pg_column_size(tidemark_row.%I), 0)', a.attname)
        else format('coalesce(pg_column_size(tidemark_row.%I), 0)', a.attname) end || '::bigint',
                      ' + ' order by a.attnum)
    into sizes
    from pg_attribute a where a.attrelid = plan.relation and a.attnum > 0 and not a.attisdropped;
    fits := tidemark.source_read(plan, format(E'\x02%s\x02(%s)', max_bytes, sizes));
    -- A few more than there were, should rows have come since.
    return case when fits.examined < fits.taken then greatest(1, fits.examined)
                else least(rows_limit, fits.taken + 16) end;
end
$$;
comment on function tidemark.source_budget(tidemark.source_plan) is
    'How many rows the next page of a source may have: at most the rows_limit of the plan, at least one, and as many '
    'as fit into the setting batch.max_bytes.';
grant execute on function tidemark.source_budget(tidemark.source_plan) to tidemark_executor;
