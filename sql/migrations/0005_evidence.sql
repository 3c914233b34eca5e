-- Evidence of every decision, what is still to be delivered, and what failed.

set local role tidemark_owner;

create table tidemark.decision (
    worker_id integer not null,
    route_id integer not null,
    last_seq bigint not null,
    first_seq bigint not null,
    events integer not null constraint events_is_positive check (events > 0),
    outcome tidemark.outcome not null constraint outcome_is_not_failed check (outcome <> 'failed'),
    reason text,
    seqs int8multirange not null,
    decided_at timestamptz not null default pg_catalog.clock_timestamp(),
    primary key (worker_id, route_id, last_seq)
) partition by range (last_seq);
comment on table tidemark.decision is 'What many events of a batch came to alike, at their first attempt, as ranges of event numbers: one row per batch, route and outcome. Shown one row an event by tidemark.route_attempt.';
comment on column tidemark.decision.worker_id is 'tidemark.worker.id.';
comment on column tidemark.decision.route_id is 'tidemark.outbound_route.id; 0: no route matched.';
comment on column tidemark.decision.last_seq is 'Highest number in seqs. A number is decided once per worker and route, so this makes the key.';
comment on column tidemark.decision.first_seq is 'Lowest number in seqs.';
comment on column tidemark.decision.events is 'How many numbers seqs holds.';
comment on column tidemark.decision.outcome is 'skipped, disabled, dry_run, sent, or pending (not tried yet).';
comment on column tidemark.decision.reason is 'Closed set: no_route, or why a route that does not fail closed was skipped; why it is pending: behind_key, busy, breaker_open, gate_closed; null where the outcome says it all.';
comment on column tidemark.decision.seqs is 'Numbers of the events.';
comment on column tidemark.decision.decided_at is 'When.';

do $$
begin
    -- Several times as fast as pglz on these ranges, and as small; not every server is built with it.
    alter table tidemark.decision alter column seqs set compression lz4;
exception when feature_not_supported then
    null;
end
$$;
create table tidemark.decision_p0 partition of tidemark.decision for values from (0) to (1000000);
create table tidemark.decision_p1000000 partition of tidemark.decision for values from (1000000) to (2000000);
create table tidemark.decision_p2000000 partition of tidemark.decision for values from (2000000) to (3000000);
create table tidemark.decision_rest partition of tidemark.decision default;

create table tidemark.attempt (
    seq bigint not null,
    worker_id integer not null,
    route_id integer not null,
    attempt_no smallint not null constraint attempt_no_is_positive check (attempt_no > 0),
    outcome tidemark.outcome not null,
    decided_at timestamptz not null default pg_catalog.clock_timestamp(),
    reason text,
    detail text,
    primary key (worker_id, route_id, seq, attempt_no)
) partition by range (seq);
comment on table tidemark.attempt is 'One row per event, route and attempt for what has a story of its own: what failed, was tried again or replayed. Shown by tidemark.route_attempt. Source: S0 iu_route_attempt.';
comment on column tidemark.attempt.seq is 'Number of the event.';
comment on column tidemark.attempt.worker_id is 'tidemark.worker.id.';
comment on column tidemark.attempt.route_id is 'tidemark.outbound_route.id.';
comment on column tidemark.attempt.attempt_no is '1 for the first, then one more with each replay.';
comment on column tidemark.attempt.outcome is 'sent, failed or pending; dry_run or disabled for a replay.';
comment on column tidemark.attempt.decided_at is 'When.';
comment on column tidemark.attempt.reason is 'Why it failed: a reason of the decision contract, the SQLSTATE of the error, or the code that the sink gave.';
comment on column tidemark.attempt.detail is 'Message of the error.';

create table tidemark.attempt_p0 partition of tidemark.attempt for values from (0) to (1000000);
create table tidemark.attempt_p1000000 partition of tidemark.attempt for values from (1000000) to (2000000);
create table tidemark.attempt_p2000000 partition of tidemark.attempt for values from (2000000) to (3000000);
create table tidemark.attempt_rest partition of tidemark.attempt default;

create table tidemark.pending (
    worker_id integer not null references tidemark.worker,
    route_id integer not null references tidemark.outbound_route,
    seq bigint not null,
    attempt_no smallint not null default 1,
    key text,
    next_attempt_at timestamptz not null default pg_catalog.clock_timestamp(),
    error_count integer not null default 0,
    last_error text,
    dead_letter_id bigint,
    created_at timestamptz not null default pg_catalog.clock_timestamp(),
    primary key (worker_id, route_id, seq)
);
-- What is due, and who is first of a key: neither may cost more when much waits.
create index pending_due on tidemark.pending (route_id, next_attempt_at);
create index pending_key on tidemark.pending (worker_id, route_id, key, seq) where key is not null and dead_letter_id is null;
comment on table tidemark.pending is 'Events that a target outside the database is still to get. Source: S2 event_pending.';
comment on column tidemark.pending.worker_id is 'tidemark.worker.id.';
comment on column tidemark.pending.route_id is 'tidemark.outbound_route.id.';
comment on column tidemark.pending.seq is 'Number of the event.';
comment on column tidemark.pending.attempt_no is 'Latest attempt on record; the next one has one more.';
comment on column tidemark.pending.key is 'Ordering key of the event.';
comment on column tidemark.pending.next_attempt_at is 'Not before. infinity: it waits behind an earlier event of its key.';
comment on column tidemark.pending.error_count is 'Attempts that failed so far.';
comment on column tidemark.pending.last_error is 'Why the last one failed.';
comment on column tidemark.pending.dead_letter_id is 'Dead letter that this replays, whose snapshot holds the event; null: the event is in the log.';
comment on column tidemark.pending.created_at is 'When it was staged.';

create table tidemark.dead_letter (
    id bigint generated always as identity primary key,
    idempotency_key text not null unique,
    worker_id integer not null references tidemark.worker,
    route_id integer references tidemark.outbound_route,
    seq bigint,
    event_id uuid,
    source text not null default 'outbox',
    shard integer not null default 0,
    item_id text,
    item_ts timestamptz,
    event_snapshot jsonb not null,
    error_code text not null,
    error_detail text,
    attempts integer not null default 1,
    first_failed_at timestamptz not null default pg_catalog.clock_timestamp(),
    last_failed_at timestamptz not null default pg_catalog.clock_timestamp(),
    resolved_at timestamptz,
    resolution text constraint resolution_is_known check (resolution in ('sent', 'dry_run', 'discarded')),
    resolved_by text,
    resolution_reason text,
    constraint event_or_row check (
        source = 'outbox' and route_id is not null and seq is not null and event_id is not null and item_id is null
        or source <> 'outbox' and route_id is null and seq is null and event_id is null and item_id is not null),
    constraint resolved_is_whole check ((resolved_at is null) = (resolution is null) and (resolved_at is null) = (resolved_by is null))
);
create index dead_letter_worker on tidemark.dead_letter (worker_id);
create index dead_letter_route on tidemark.dead_letter (route_id);
create index dead_letter_open on tidemark.dead_letter (last_failed_at) where resolved_at is null;
comment on table tidemark.dead_letter is 'Events that could not be routed or delivered, and rows of sources that could not be handled, each with a full snapshot. Resolved, never deleted. Source: S0 iu_route_dead_letter.';
comment on column tidemark.dead_letter.id is 'Number for `tidemark dead-letter`.';
comment on column tidemark.dead_letter.idempotency_key is 'tm:{worker}:{route}:{event_id}; of a row tm:{worker}:{source}:{item_id}.';
comment on column tidemark.dead_letter.worker_id is 'tidemark.worker.id.';
comment on column tidemark.dead_letter.route_id is 'tidemark.outbound_route.id; null for a row.';
comment on column tidemark.dead_letter.seq is 'Number of the event; null for a row.';
comment on column tidemark.dead_letter.event_id is 'Identity of the event; null for a row.';
comment on column tidemark.dead_letter.source is 'outbox, or the source that the row is of.';
comment on column tidemark.dead_letter.shard is 'Shard of the worker that failed with the row.';
comment on column tidemark.dead_letter.item_id is 'Id of the row, as text; null for an event.';
comment on column tidemark.dead_letter.item_ts is 'Timestamp of the row.';
comment on column tidemark.dead_letter.event_snapshot is 'The event as tidemark.event_json shows it, or the row as JSON, so that a replay needs no row of the log.';
comment on column tidemark.dead_letter.error_code is 'Reason of the decision contract, or SQLSTATE.';
comment on column tidemark.dead_letter.error_detail is 'Message of the error.';
comment on column tidemark.dead_letter.attempts is 'Attempts so far.';
comment on column tidemark.dead_letter.first_failed_at is 'First failure.';
comment on column tidemark.dead_letter.last_failed_at is 'Latest failure.';
comment on column tidemark.dead_letter.resolved_at is 'Null: open.';
comment on column tidemark.dead_letter.resolution is 'sent or dry_run (replayed), or discarded.';
comment on column tidemark.dead_letter.resolved_by is 'The role that logged in to resolve it.';
comment on column tidemark.dead_letter.resolution_reason is 'Why it was discarded.';
alter table tidemark.pending add foreign key (dead_letter_id) references tidemark.dead_letter;
create index pending_dead_letter on tidemark.pending (dead_letter_id) where dead_letter_id is not null;

create type tidemark.result as (
    route_id integer,
    fresh boolean,
    outcome tidemark.outcome,
    reason text,
    detail text,
    seqs int8multirange,
    delay double precision
);
comment on type tidemark.result is 'What deliveries outside the database came to: sent, failed, or pending (to be tried again after delay seconds; null: behind an earlier event of its key). fresh: the events are of the batch that is settled; otherwise they were pending. pending without detail: it was not tried.';

create type tidemark.replay as (
    id bigint,
    route_code text,
    event_id uuid,
    attempt_no integer,
    outcome tidemark.outcome,
    reason text,
    detail text
);
comment on type tidemark.replay is 'What a replay of a dead letter came to, or with dry run would come to.';

grant select on tidemark.decision, tidemark.attempt, tidemark.pending to tidemark_reader, tidemark_executor;
grant select (id, idempotency_key, worker_id, route_id, seq, event_id, source, shard, item_id, item_ts, error_code, error_detail, attempts, first_failed_at,
              last_failed_at, resolved_at, resolution, resolved_by, resolution_reason)
    on tidemark.dead_letter to tidemark_reader, tidemark_executor;
grant select on tidemark.dead_letter to tidemark_admin;
