create or replace function tidemark.source_hold(
    plan tidemark.source_plan, kind text, detail text, message text default null)
returns tidemark.source_plan
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    perform tidemark.finding_open(source_hold.kind,
                                  tidemark.executor_id((plan.cursor).worker, (plan.cursor).source, (plan.cursor).shard),
                                  'high', source_hold.detail, source_hold.message);
    plan.status := 'held';
    plan.detail := source_hold.detail;
    return plan;
end
$$;
comment on function tidemark.source_hold(tidemark.source_plan, text, text, text) is
    'Opens the finding that holds the worker, and returns the plan with status held.';
