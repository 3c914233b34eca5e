-- Replays of a span of the log on a route: also how a new route gets what was before it.

set local role tidemark_owner;

create table tidemark.replay_job (
    id bigint generated always as identity primary key,
    route_id integer not null references tidemark.outbound_route,
    worker_id integer not null references tidemark.worker,
    first_seq bigint not null,
    last_seq bigint not null,
    passed_seq bigint not null,
    key text,
    outcomes text[],
    rate double precision constraint rate_is_positive check (rate > 0),
    due_at timestamptz not null default pg_catalog.clock_timestamp(),
    staged bigint not null default 0,
    sent bigint not null default 0,
    failed bigint not null default 0,
    left_out jsonb not null default '{}',
    requested_at timestamptz not null default pg_catalog.clock_timestamp(),
    requested_by text not null default session_user,
    reason text not null,
    finished_at timestamptz,
    cancelled_at timestamptz,
    cancelled_by text,
    constraint span_is_in_order check (first_seq <= last_seq),
    constraint cancelled_is_whole check ((cancelled_at is null) = (cancelled_by is null))
);
create index replay_job_route on tidemark.replay_job (route_id);
create index replay_job_open on tidemark.replay_job (worker_id) where finished_at is null;
create index replay_job_worker on tidemark.replay_job (worker_id);
comment on table tidemark.replay_job is 'Replays of events on a route that an operator asked for, done step by step by the passes of its worker. Shown by tidemark.replay_summary.';
comment on column tidemark.replay_job.id is 'Number for `tidemark route replay --cancel`.';
comment on column tidemark.replay_job.route_id is 'tidemark.outbound_route.id.';
comment on column tidemark.replay_job.worker_id is 'tidemark.worker.id: the worker of the route.';
comment on column tidemark.replay_job.first_seq is 'First number of the span.';
comment on column tidemark.replay_job.last_seq is 'Last number of the span, at most the worker''s watermark when the replay was asked for.';
comment on column tidemark.replay_job.passed_seq is 'The replay has staged what is up to this number. It moves in the transaction that stages.';
comment on column tidemark.replay_job.key is 'Only events with this ordering key; null: all.';
comment on column tidemark.replay_job.outcomes is 'Only events that came to one of these on the route: sent, disabled, dry_run, skipped, failed, pending, or none (no evidence); null: any.';
comment on column tidemark.replay_job.rate is 'Events per second at most, by the database''s clock; null: as many as the route takes.';
comment on column tidemark.replay_job.due_at is 'When the next event may go.';
comment on column tidemark.replay_job.staged is 'Events staged for delivery so far.';
comment on column tidemark.replay_job.sent is 'Of these delivered.';
comment on column tidemark.replay_job.failed is 'Of these dead-lettered.';
comment on column tidemark.replay_job.left_out is 'Events passed over so far, by the reason: pending, dead_letter, discarded, no_match, open, outcome.';
comment on column tidemark.replay_job.requested_at is 'When it was asked for.';
comment on column tidemark.replay_job.requested_by is 'The role that logged in to ask.';
comment on column tidemark.replay_job.reason is 'Why.';
comment on column tidemark.replay_job.finished_at is 'When the last event of it was settled, or, of a cancelled one, it was cancelled; null: not yet.';
comment on column tidemark.replay_job.cancelled_at is 'When it was cancelled.';
comment on column tidemark.replay_job.cancelled_by is 'The role that logged in to cancel it.';

alter table tidemark.pending add column replay_id bigint references tidemark.replay_job;
comment on column tidemark.pending.replay_id is 'Replay of the route that staged it; null: none.';
create index pending_replay_job on tidemark.pending (replay_id) where replay_id is not null;
alter table tidemark.pending add constraint replay_is_replayed check (replay or replay_id is null);

grant select on tidemark.replay_job to tidemark_reader, tidemark_executor;
