-- Every heartbeat is written here. A caller that beats for a cursor holds the lock on its row, under its epoch.
create or replace function tidemark.executor_beat(
    executor_ids text[],
    status text,
    lease interval default null,
    payload jsonb default null,
    current_job_id text default null)
returns timestamptz
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    at timestamptz;
begin
    with beaten as (
        update tidemark.heartbeat h
        set last_beat_at = clock_timestamp(), ticks_total = h.ticks_total + 1,
            last_status = coalesce(executor_beat.status, h.last_status),
            payload = coalesce(executor_beat.payload, h.payload), current_job_id = executor_beat.current_job_id,
            lease_until = case when executor_beat.lease = '0' then null
                               else coalesce(clock_timestamp() + executor_beat.lease, h.lease_until) end,
            lease_owner = case when executor_beat.lease = '0' then null else h.lease_owner end
        where h.executor_id = any (executor_beat.executor_ids)
        returning h.last_beat_at)
    select max(b.last_beat_at) into at from beaten b;
    return at;
end
$$;
comment on function tidemark.executor_beat(text[], text, interval, jsonb, text) is
    'Writes a heartbeat of each of these executors. status and payload: null leaves them unchanged. current_job_id: '
    'null is none. lease: the lease lasts that long from now; 0 ends it, null leaves it unchanged. Returns the time of '
    'the last beat; null: there is no such executor.';
