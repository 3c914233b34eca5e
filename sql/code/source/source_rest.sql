create or replace function tidemark.source_rest(plan tidemark.source_plan)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    c constant tidemark.worker_cursor := plan.cursor;
    summary constant jsonb :=
        jsonb_build_object('worker', c.worker, 'source', c.source, 'shard', c.shard, 'status', plan.status,
        'detail', plan.detail, 'rows', 0, 'phase', c.phase, 'more', false);
begin
    perform tidemark.executor_beat(array[tidemark.executor_id(c.worker, c.source, c.shard)], plan.status, plan.lease);
    if plan.status = 'held' then
        update tidemark.worker_cursor x set last_run_at = clock_timestamp(),
            -- The pass after this one closes the finding of a cursor that waited (blocked_by).
            last_run_summary = summary || jsonb_strip_nulls(jsonb_build_object(
                'checkpoint', x.last_run_summary -> 'checkpoint', 'blocked_by', x.last_run_summary -> 'blocked_by'))
        where x.worker = c.worker and x.source = c.source and x.shard = c.shard;
    end if;
    return summary;
end
$$;
comment on function tidemark.source_rest(tidemark.source_plan) is
    'Ends a pass that did nothing: beats, and returns the reason.';
grant execute on function tidemark.source_rest(tidemark.source_plan) to tidemark_executor;
