-- What an executor works on, and one switch for all thresholds of silence.

set local role tidemark_owner;

drop function if exists tidemark.heartbeat_write;
alter table tidemark.heartbeat add column current_job_id text
    constraint current_job_id_is_short check (current_job_id ~ '^[^[:space:][:cntrl:]]{1,200}$');
comment on column tidemark.heartbeat.current_job_id is 'Job that it worked on at its last beat, as it says; null: none. Source: S2 queue_heartbeat.';
insert into tidemark.setting (key, value, description) values
    ('queue.heartbeat.stale_threshold_seconds', '0', 'Seconds: no executor is silent before them, whatever its own threshold. A huge number switches the check for silence off. Source: S4.')
on conflict do nothing;
