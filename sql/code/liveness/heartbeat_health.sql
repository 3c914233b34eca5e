-- public
create or replace view tidemark.heartbeat_health as
select h.executor_id, h.kind, h.domain_scope,
       case when e.excuse is not null then 'quiet' when a.age > t.seconds then 'silent' else 'alive' end as state,
       e.excuse,
       floor(a.age)::bigint as age_seconds,
       h.expected_cadence_seconds, t.seconds as stale_threshold_seconds,
       -- LI3, literally: an operator who sets a threshold below three cadences wants a critical alert at once.
       case when a.age / h.expected_cadence_seconds >= 3 and a.age / h.expected_cadence_seconds < 10 then 'warning'
            else 'critical' end::tidemark.severity as severity,
       h.last_status, h.last_beat_at, h.ticks_total, h.registered_at, h.registered_by, h.lease_owner, h.payload,
       c.worker, h.current_job_id
from tidemark.heartbeat h
left join lateral (
    select c.worker, tidemark.closed_gate(c.worker) as gate from tidemark.worker_cursor c
    where c.worker || '/' || c.source || '/' || c.shard = h.executor_id limit 1) c on true
left join tidemark.silence s on s.executor_id = h.executor_id
cross join lateral (
    -- Ignore a setting that is not a number: a typing error must not switch off an alarm.
    select greatest(h.stale_threshold_seconds, (
        select least(s.value::numeric, 2147483647)::integer from tidemark.setting s
        where s.key = 'queue.heartbeat.stale_threshold_seconds' and s.value ~ '^[0-9]{1,30}$')) as seconds) t
cross join lateral (
    select extract(epoch from clock_timestamp() - greatest(
        coalesce(h.last_beat_at, h.watched_since, h.registered_at),
        -- Of before the clock was set back, it excuses nothing.
        case when s.excused_at <= clock_timestamp() then s.excused_at end)) as age) a
cross join lateral (
    select case
        when c.gate = 'paused' then 'paused'
        when c.gate is not null then 'closed by ' || c.gate
        when h.last_beat_at is null and h.watched_since is null then 'never run'
        when h.executor_id like 'daemon/%' and h.last_status = 'stopped' then 'stopped' end as excuse) e;
comment on view tidemark.heartbeat_health is
    'The state of each executor, by the database''s clock: alive, silent (no beat for longer than its threshold), or '
    'quiet. For quiet, excuse says why its silence raises no alarm: its worker is closed or paused, it was never run '
    'and no operator registered it, or it is a daemon that was stopped. severity is that of its silence: warning where '
    'the age is 3 to below 10 cadences, else critical. worker is set for a worker''s cursor. stale_threshold_seconds '
    'is the larger of the executor''s own threshold and the setting queue.heartbeat.stale_threshold_seconds.';
grant select on tidemark.heartbeat_health to tidemark_reader, tidemark_executor;
