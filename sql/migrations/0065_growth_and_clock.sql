-- How fast the database grows, and steps of the server's clock.

set local role tidemark_owner;

-- An upgrade from a release before 0039 has not made the trigger yet that names the actor of the audit.
alter table tidemark.audit alter column actor set default session_user;
insert into tidemark.setting (key, value, description)
values ('disk.size', '0', 'Size, as 500 GB: what the database may grow to on its disk. The cause disk_filling compares it with how fast the database grows. 0: not known.')
on conflict do nothing;
alter table tidemark.audit alter column actor drop default;

create table tidemark.storage_sample (
    one boolean primary key default true constraint there_is_one_row check (one),
    at timestamptz not null,
    bytes bigint not null,
    log_bytes bigint not null,
    older_at timestamptz not null,
    older_bytes bigint not null,
    newer_at timestamptz not null,
    newer_bytes bigint not null
);
comment on table tidemark.storage_sample is 'How large the database is and was, one row. Kept by tidemark.maintain.';
comment on column tidemark.storage_sample.one is 'True.';
comment on column tidemark.storage_sample.at is 'When it was measured last.';
comment on column tidemark.storage_sample.bytes is 'pg_database_size then.';
comment on column tidemark.storage_sample.log_bytes is 'Of it the log with its evidence.';
comment on column tidemark.storage_sample.older_at is 'When the sample that the growth counts from was taken: up to an hour ago.';
comment on column tidemark.storage_sample.older_bytes is 'Size then.';
comment on column tidemark.storage_sample.newer_at is 'When the sample that takes its place next was taken.';
comment on column tidemark.storage_sample.newer_bytes is 'Size then.';
grant select on tidemark.storage_sample to tidemark_reader, tidemark_executor;

create table tidemark.clock_step (
    id bigint generated always as identity primary key,
    at timestamptz not null,
    step interval not null,
    seen_by text not null,
    settled_at timestamptz
);
create unique index clock_step_open on tidemark.clock_step ((true)) where settled_at is null;
comment on table tidemark.clock_step is 'Steps of the server''s clock, as daemons see them: a daemon has a clock that only goes forward. Written by tidemark.heartbeat_daemon.';
comment on column tidemark.clock_step.id is 'Number of the step.';
comment on column tidemark.clock_step.at is 'When a daemon saw it, by the clock after the step.';
comment on column tidemark.clock_step.step is 'How far the clock stepped; negative: back. Of several steps their sum.';
comment on column tidemark.clock_step.seen_by is 'The daemon that saw it first.';
comment on column tidemark.clock_step.settled_at is 'When tidemark.clock_settle made up for it, or it was over. Null: it is open; at most one is.';
grant select on tidemark.clock_step to tidemark_reader, tidemark_executor;
