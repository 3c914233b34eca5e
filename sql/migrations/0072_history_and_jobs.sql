-- The history of routes and of the log, by the minute; jobs that do many dead letters.

set local role tidemark_owner;

create table tidemark.route_minute (
    route_id integer not null,
    at timestamptz not null,
    sent bigint not null default 0,
    retried bigint not null default 0,
    failed bigint not null default 0,
    recorded bigint not null default 0,
    waiting bigint not null default 0,
    primary key (route_id, at)
) with (fillfactor = 70);
create index route_minute_at on tidemark.route_minute (at);
create index route_minute_single on tidemark.route_minute (at) where at <> date_bin('1 hour', at, 'epoch');
comment on table tidemark.route_minute is 'What each route did, by the minute; by the hour once it is a day old. Kept for a week. Shown by tidemark.history.';
comment on column tidemark.route_minute.route_id is 'tidemark.outbound_route.id.';
comment on column tidemark.route_minute.at is 'When the minute began. A minute that begins an hour has the sum of that hour once it is a day old.';
comment on column tidemark.route_minute.sent is 'Events that the target took.';
comment on column tidemark.route_minute.retried is 'Attempts that failed and are made again.';
comment on column tidemark.route_minute.failed is 'Events that became dead letters.';
comment on column tidemark.route_minute.recorded is 'Events that were recorded and not delivered: dry_run, disabled, skipped.';
comment on column tidemark.route_minute.waiting is 'Events pending at the end of the minute, counted up to 10000; of an hour the most. Noted by tidemark.maintain.';
grant select on tidemark.route_minute to tidemark_reader, tidemark_executor;

create table tidemark.log_minute (
    at timestamptz primary key,
    last_seq bigint not null
);
comment on table tidemark.log_minute is 'How far the numbers of the log were, by the minute. Written by tidemark.maintain, kept for a week.';
comment on column tidemark.log_minute.at is 'When the minute began at whose end it was noted.';
comment on column tidemark.log_minute.last_seq is 'The highest number that a writer had taken.';
grant select on tidemark.log_minute to tidemark_reader, tidemark_executor;

-- Jobs that replay or discard many dead letters.
create table tidemark.letter_job (
    id bigint generated always as identity primary key,
    action text not null constraint action_is_known check (action in ('replay', 'discard')),
    route_id integer,
    source text,
    error_code text,
    letters bigint not null,
    done bigint not null default 0,
    outcomes jsonb not null default '{}',
    after_id bigint,
    due_at timestamptz not null default pg_catalog.clock_timestamp(),
    waits_for text,
    requested_at timestamptz not null default pg_catalog.clock_timestamp(),
    requested_by text not null,
    reason text not null,
    finished_at timestamptz,
    cancelled_by text,
    constraint some_are_chosen check (route_id is not null or source is not null)
);
create index letter_job_route on tidemark.letter_job (route_id);
create index letter_job_open on tidemark.letter_job (due_at) where finished_at is null;
comment on table tidemark.letter_job is 'Jobs of daemons that replay or discard dead letters, part by part. Shown by tidemark.letter_job_summary.';
comment on column tidemark.letter_job.id is 'Number for `tidemark dead-letter job cancel`.';
comment on column tidemark.letter_job.action is 'replay or discard.';
comment on column tidemark.letter_job.route_id is 'Only letters of this route (tidemark.outbound_route.id); null: of any.';
comment on column tidemark.letter_job.source is 'Only letters of this source; outbox: of events; null: of any.';
comment on column tidemark.letter_job.error_code is 'Only letters with this error code; null: with any.';
comment on column tidemark.letter_job.letters is 'How many were chosen when the job was asked for. Letters that fail later are not part of it.';
comment on column tidemark.letter_job.done is 'How many of these it has done.';
comment on column tidemark.letter_job.outcomes is 'How many of these came to what; pending: the worker delivers them.';
comment on column tidemark.letter_job.after_id is 'The letter that was replayed last; null: none yet.';
comment on column tidemark.letter_job.due_at is 'When its next part is due.';
comment on column tidemark.letter_job.waits_for is 'Why the last part was not done; null: it was.';
comment on column tidemark.letter_job.requested_at is 'When it was asked for.';
comment on column tidemark.letter_job.requested_by is 'The role that logged in to ask.';
comment on column tidemark.letter_job.reason is 'Why.';
comment on column tidemark.letter_job.finished_at is 'When it was over; null: not yet.';
comment on column tidemark.letter_job.cancelled_by is 'The role that logged in to cancel it; null: it was not cancelled.';
grant select on tidemark.letter_job to tidemark_reader, tidemark_executor;
