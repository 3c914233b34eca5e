-- Every heartbeat is written here, but that of a claim (tidemark.claim). A caller that beats for a cursor holds the
-- lock on its row, under its epoch.
create or replace function tidemark.executor_beat(
    executor_ids text[],
    status text,
    lease interval default null,
    payload jsonb default null,
    current_job_id text default null)
returns timestamptz
language plpgsql volatile
set search_path = pg_catalog, pg_temp
-- A plan for the values of each call would be no better, and would be made each time.
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    at constant timestamptz := clock_timestamp();
begin
    update tidemark.heartbeat h
    set last_beat_at = at, ticks_total = h.ticks_total + 1,
        last_status = coalesce(executor_beat.status, h.last_status),
        payload = coalesce(executor_beat.payload, h.payload), current_job_id = executor_beat.current_job_id,
        -- A beat that comes after the end of the lease, since its client no longer waits for it, begins no new one.
        lease_until = case when executor_beat.lease = '0' then null
                           when h.lease_until is not null then coalesce(at + executor_beat.lease, h.lease_until) end,
        lease_owner = case when executor_beat.lease = '0' then null else h.lease_owner end
    where h.executor_id = any (executor_beat.executor_ids);
    return case when found then at end;
end
$$;
comment on function tidemark.executor_beat(text[], text, interval, jsonb, text) is
    'Writes a heartbeat of each of these executors. status and payload: null leaves them unchanged. current_job_id: '
    'null is none. lease: a lease that there is lasts that long from now; 0 ends it, null leaves it unchanged. Returns '
    'the time of the beat; null: there is no such executor.';
