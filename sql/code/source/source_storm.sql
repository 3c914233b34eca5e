create or replace function tidemark.source_storm(
    plan tidemark.source_plan,
    page tidemark.source_page,
    metadata jsonb,
    recount jsonb,
    caught_up boolean)
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    w constant tidemark.worker := plan.worker;
    executor constant text := tidemark.executor_id(w.worker, (plan.source).source, (plan.cursor).shard);
    told constant jsonb := case jsonb_typeof(page.result) when 'object' then page.result else '{}' end;
    groups constant numeric := case jsonb_typeof(told -> 'groups')
        when 'number' then (told ->> 'groups')::numeric else (recount ->> 'groups')::numeric end;
    -- A page is bounded: count the rows of consecutive pages until the worker has caught up.
    burst constant numeric := coalesce((metadata ->> 'burst')::numeric, 0) + case jsonb_typeof(told -> 'touched')
        when 'number' then (told ->> 'touched')::numeric else page.taken end;
    guarded constant boolean := w.storm_fraction is not null and (plan.cursor).phase <> 'seeding';
    -- The worker was throttled since it last caught up. Do not throttle it again before it has caught up, or new rows
    -- would throttle it forever.
    throttled constant boolean := metadata ? 'storm_until' and metadata ? 'burst';
begin
    if guarded and throttled and not caught_up then
        return metadata;
    elsif guarded and not throttled and burst >= 10 and burst > w.storm_fraction::numeric * groups then
        perform tidemark.finding_open('group_invalidation_storm', executor, 'high',
            format('%s touches of about %s groups at once, more than %s of them', burst, round(groups),
                   w.storm_fraction));
        metadata := metadata || jsonb_build_object('storm_until',
            clock_timestamp() + greatest(w.coalesce_window, interval '10 seconds'));
    elsif metadata ? 'storm_until' then
        metadata := metadata - 'storm_until';
        perform tidemark.finding_close('group_invalidation_storm', executor);
    end if;
    -- Rows from before the worker's first pass are history, not a storm.
    return case when caught_up or not guarded then metadata - 'burst'
                else metadata || jsonb_build_object('burst', burst) end;
end
$$;
comment on function tidemark.source_storm(tidemark.source_plan, tidemark.source_page, jsonb, jsonb, boolean) is
    'The storm guard. If more than the worker''s storm_fraction of all groups were touched since the worker last '
    'caught up (caught_up: it has now), it opens the finding group_invalidation_storm, and the worker waits once for '
    'its coalesce_window, at least 10 s. The worker then goes on at full speed. The finding closes when the worker has '
    'caught up, or when the guard is removed. The guard counts touches, not distinct groups: the rows of each page, or '
    'touched as the handler returns it; a group in two pages counts twice. The number of groups is the handler''s '
    'groups, or else the planner''s estimate. The guard is off while the cursor is seeding. Returns the metadata of '
    'the cursor.';
