-- Silence is noticed: who is waited for, what was told of it, and findings that people and programs hear of.

set local role tidemark_owner;

alter table tidemark.heartbeat add column watched_since timestamptz;
comment on column tidemark.heartbeat.watched_since is 'Until the first beat, silence counts from here: set by tidemark.heartbeat_register. Null: an executor that never beat is not waited for.';

-- Not columns of tidemark.heartbeat, and no foreign key to it: a check that locked the row of an executor, while
-- somebody reads its result at leisure, would keep that executor's worker from its claim.
create table tidemark.silence (
    executor_id text primary key,
    told_at timestamptz,
    excused_at timestamptz
);
comment on table tidemark.silence is 'What tidemark.stale_check knows of executors that were silent.';
comment on column tidemark.silence.executor_id is 'tidemark.heartbeat.executor_id.';
comment on column tidemark.silence.told_at is 'When its silence was last told by an event.';
comment on column tidemark.silence.excused_at is 'When it was last found to be silent because its worker is closed or paused: silence counts from here at the earliest.';

alter table tidemark.finding
    add column acked_at timestamptz,
    add column acked_by text,
    add column ack_note text,
    add constraint ack_is_whole check ((acked_at is null) = (acked_by is null) and (acked_at is null) = (ack_note is null));
comment on column tidemark.finding.acked_at is 'When somebody said that they know of it; null: nobody. It is still open.';
comment on column tidemark.finding.acked_by is 'The role that logged in to say so.';
comment on column tidemark.finding.ack_note is 'What that person said.';
create index finding_closed_at on tidemark.finding (closed_at) where closed_at is not null;

create table tidemark.cursor_sample (
    worker text not null,
    source text not null,
    shard integer not null,
    older_at timestamptz not null,
    older_seen bigint not null,
    newer_at timestamptz not null,
    newer_seen bigint not null,
    primary key (worker, source, shard)
) with (fillfactor = 50);
comment on table tidemark.cursor_sample is 'How many events each cursor had seen a minute or two ago, for its rate. Kept by tidemark.maintain.';
comment on column tidemark.cursor_sample.worker is 'The worker.';
comment on column tidemark.cursor_sample.source is 'The source it reads.';
comment on column tidemark.cursor_sample.shard is 'Part of the source.';
comment on column tidemark.cursor_sample.older_at is 'When the sample that the rate counts from was taken.';
comment on column tidemark.cursor_sample.older_seen is 'worker_cursor.events_seen then.';
comment on column tidemark.cursor_sample.newer_at is 'When the sample that takes its place next was taken.';
comment on column tidemark.cursor_sample.newer_seen is 'worker_cursor.events_seen then.';

-- Open dead letters of a route are counted without reading the resolved ones, which only grow.
create index dead_letter_open_route on tidemark.dead_letter (route_id, last_failed_at) where resolved_at is null;

insert into tidemark.setting (key, value, description) values
    ('finding.retention', '90 days', 'Interval for which a closed finding is kept.'),
    ('lag.warn', '1 minute', 'Interval: a backlog or a delivery that is due for longer is a warning, and opens the finding cursor_lag.'),
    ('lag.bad', '15 minutes', 'Interval: a backlog or a delivery that is due for longer is bad.')
on conflict do nothing;

insert into tidemark.domain (domain, metadata_only, description)
values ('system', true, 'What Tidemark says of itself.')
on conflict do nothing;
insert into tidemark.event_type (domain, type, enabled, description, metadata_only)
select d.domain, t.type, t.enabled, t.description, d.metadata_only
from tidemark.domain d cross join (values
    ('queue_worker_silent', true, 'An executor has been silent for longer than its threshold. Source: S4.'),
    -- Off: they are written in the transaction that opens or closes the finding, a worker's settle for one.
    ('finding_opened', false, 'A finding was opened.'),
    ('finding_closed', false, 'A finding was closed.')) t (type, enabled, description)
where d.domain = 'system'
on conflict do nothing;

grant select on tidemark.silence, tidemark.cursor_sample to tidemark_reader, tidemark_executor;
