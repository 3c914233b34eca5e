create or replace function tidemark.source_cut(plan tidemark.source_plan, epoch bigint, examined integer, message text)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    executor constant text :=
        tidemark.executor_id((plan.cursor).worker, (plan.cursor).source, (plan.cursor).shard);
    -- If the read itself was cut off, the number of rows is unknown.
    suspects constant integer := coalesce(nullif(source_cut.examined, 0), plan.rows_limit);
    part constant integer := tidemark.source_part(suspects);
    c tidemark.worker_cursor;
    cuts integer;
begin
    perform tidemark.lease_check((plan.cursor).worker, source_cut.epoch, (plan.cursor).source, (plan.cursor).shard);
    select x.* into c from tidemark.worker_cursor x
    where x.worker = (plan.cursor).worker and x.source = (plan.cursor).source and x.shard = (plan.cursor).shard
    for update;
    cuts := coalesce((c.metadata -> 'suspects' -> plan.step ->> 'cuts')::integer, 0) + 1;
    update tidemark.worker_cursor x
    set metadata = x.metadata || jsonb_build_object('suspects',
            coalesce(x.metadata -> 'suspects', '{}') || jsonb_build_object(plan.step,
                jsonb_build_object('left', suspects, 'rows', part, 'cuts', cuts))),
        -- Steps take turns (tidemark.source_next): one that is cut off again and again does not stop the others.
        last_run_summary = coalesce(x.last_run_summary, '{}') || jsonb_build_object('step', plan.step),
        updated_at = clock_timestamp()
    where x.worker = c.worker and x.source = c.source and x.shard = c.shard;
    perform tidemark.executor_beat(array[executor], 'failed: the page took too long', plan.lease);
    if cuts >= 5 then
        perform tidemark.finding_open('worker_failing', executor, 'high',
            format('worker %s: a page takes longer than the statement_timeout, %s, %s times in a row, at last of %s',
                   c.worker, current_setting('statement_timeout'), cuts,
                   case suspects when 1 then '1 row' else 'at most ' || suspects || ' rows' end), source_cut.message);
    end if;
    return jsonb_build_object('worker', c.worker, 'source', c.source, 'shard', c.shard, 'status', 'cut',
                              'step', plan.step,
        'detail', format('the page took longer than %s and was rolled back; the next has %s',
                         current_setting('statement_timeout'),
                         case part when 1 then '1 row' else 'at most ' || part || ' rows' end),
        'rows', 0, 'phase', c.phase, 'more', suspects > 1 or coalesce(source_cut.examined = 1, false));
end
$$;
comment on function tidemark.source_cut(tidemark.source_plan, bigint, integer, text) is
    'Records in the cursor that the statement_timeout ended a page, which was then rolled back: one of its rows '
    '(examined; null: as many as the page may have had) may hang. The next page of the step has a 32nd of them; other '
    'steps have their turn before it. Five such pages in a row, without a successful one, open the finding '
    'worker_failing. Returns the summary of the pass, with status cut. Raises TM011.';
grant execute on function tidemark.source_cut(tidemark.source_plan, bigint, integer, text) to tidemark_executor;
