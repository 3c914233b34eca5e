-- Not a security definer: the table is read with the rights of the role that runs the worker.
--
-- This reads only a row's ids, its time and the filter. So an error comes from the filter. The function then asks the
-- filter about halves of the page, down to the rows for which it fails. These rows count as rows of the source that
-- were read and refused.
create or replace function tidemark.source_ids(
    plan tidemark.source_plan,
    out page tidemark.source_page,
    out failed tidemark.failed_row[],
    out splits integer)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    s tidemark.source := plan.source;
    every tidemark.source_plan := plan;
    unfit text[];
begin
    failed := '{}';
    splits := 0;
    begin
        page := tidemark.source_read(plan, 'ids');
        return;
    exception when others or assert_failure then
        if tidemark.is_transient(sqlstate) or s.filter is null then
            raise;
        end if;
    end;
    s.filter := null;
    every.source := s;
    -- Include rows that an earlier pass has read: a sweep applies the filter to these too.
    page := tidemark.source_read(every, 'every');
    select x.failed, x.splits into failed, splits
    from tidemark.source_split(plan, 'ids', array(select jsonb_array_elements_text(page.result))) x;
    unfit := array(select f.item_id from unnest(failed) f);
    s.filter := format('case when tidemark_row.%I::text = any (%L) then true else (%s) end',
                       s.id_column, unfit, (plan.source).filter);
    every.source := s;
    page := tidemark.source_read(every, 'ids');
    -- A retry can succeed only after the row or the filter has changed.
    failed := array(
        select row(f.item_id, f.item_ts, f.snapshot, f.code, 'the filter of the source fails: ' || f.message, true,
                   null)::tidemark.failed_row
        from unnest(failed) f where page.result ? f.item_id);
    page.result := to_jsonb(array(select i from jsonb_array_elements_text(page.result) with ordinality r (i, ord)
                                  where i <> all (unfit) order by ord));
end
$$;
comment on function tidemark.source_ids(tidemark.source_plan) is
    'The ids of the page that the plan names, for tidemark.source_split. failed: rows of the page for which the '
    'source''s filter raises an error; they are not among the ids. splits: how often the page was read again to find '
    'them.';
grant execute on function tidemark.source_ids(tidemark.source_plan) to tidemark_executor;
