-- Cursors, leases and what the decision contract works on.

set local role tidemark_owner;

create table tidemark.heartbeat_kind (
    kind text primary key
);
comment on table tidemark.heartbeat_kind is 'Kinds of executor. Open: insert a row for a new kind. Source: S4 executor_kind.';
comment on column tidemark.heartbeat_kind.kind is 'Name of the kind.';
insert into tidemark.heartbeat_kind (kind)
values ('DOT'), ('Agent'), ('Hermes'), ('Codex'), ('PG_worker'), ('external_worker'), ('future_Kestra_adapter');

create table tidemark.heartbeat (
    executor_id text primary key,
    kind text not null default 'PG_worker' references tidemark.heartbeat_kind,
    domain_scope text[] not null default '{}',
    last_beat_at timestamptz,
    payload jsonb not null default '{}',
    expected_cadence_seconds integer not null default 60 constraint cadence_is_positive check (expected_cadence_seconds > 0),
    stale_threshold_seconds integer not null default 300 constraint threshold_is_positive check (stale_threshold_seconds > 0),
    registered_at timestamptz not null default pg_catalog.clock_timestamp(),
    registered_by text not null default session_user,
    ticks_total bigint not null default 0,
    last_status text not null default 'registered',
    lease_owner text,
    lease_until timestamptz,
    lease_epoch bigint not null default 0,
    constraint threshold_is_not_under_cadence check (stale_threshold_seconds >= expected_cadence_seconds)
) with (fillfactor = 50);
create index heartbeat_kind_fk on tidemark.heartbeat (kind);
comment on table tidemark.heartbeat is 'One row per executor: when it last gave a sign of life, and who holds its lease. Source: S4 queue_heartbeat.';
comment on column tidemark.heartbeat.executor_id is 'Name; for a cursor worker/source/shard.';
comment on column tidemark.heartbeat.kind is 'Kind of executor. Default PG_worker.';
comment on column tidemark.heartbeat.domain_scope is 'Domains that it covers; empty: all.';
comment on column tidemark.heartbeat.last_beat_at is 'Last sign of life, by the database''s clock; null: none yet.';
comment on column tidemark.heartbeat.payload is 'Small facts, never a forbidden key.';
comment on column tidemark.heartbeat.expected_cadence_seconds is 'A beat is expected this often. Default 60.';
comment on column tidemark.heartbeat.stale_threshold_seconds is 'Silent for longer: stale. Default 300, at least the cadence.';
comment on column tidemark.heartbeat.registered_at is 'When it was registered.';
comment on column tidemark.heartbeat.registered_by is 'The role that logged in to register it.';
comment on column tidemark.heartbeat.ticks_total is 'Beats so far.';
comment on column tidemark.heartbeat.last_status is 'What it said with its last beat.';
comment on column tidemark.heartbeat.lease_owner is 'Instance that holds the lease; null: nobody.';
comment on column tidemark.heartbeat.lease_until is 'End of the lease, by the database''s clock.';
comment on column tidemark.heartbeat.lease_epoch is 'Fencing token: rises with every acquisition, the same owner''s too.';

create table tidemark.worker_cursor (
    worker text not null references tidemark.worker (worker),
    source text not null,
    shard integer not null default 0 constraint shard_is_not_negative check (shard >= 0),
    watermark_ts timestamptz,
    watermark_id text default '0',
    decided_through text not null default '0',
    holes int8multirange not null default '{}',
    fenced int8multirange not null default '{}',
    fence text[] not null default '{}',
    last_run_at timestamptz,
    last_run_summary jsonb not null default '{}',
    events_seen bigint not null default 0,
    attempts_written bigint not null default 0,
    dead_lettered bigint not null default 0,
    settles bigint not null default 0,
    horizon timestamptz,
    sweep jsonb not null default '{}',
    verified_through timestamptz,
    phase text not null default 'incremental' constraint phase_is_known check (phase in ('seeding', 'reconciling', 'incremental')),
    metadata jsonb not null default '{}',
    paused_at timestamptz,
    created_at timestamptz not null default pg_catalog.clock_timestamp(),
    updated_at timestamptz not null default pg_catalog.clock_timestamp(),
    primary key (worker, source, shard)
) with (fillfactor = 50);
comment on table tidemark.worker_cursor is 'How far each worker has come in each source. Source: S0 iu_route_worker_cursor, S2 gov_worker_cursor.';
comment on column tidemark.worker_cursor.worker is 'The worker.';
comment on column tidemark.worker_cursor.source is 'The source it reads.';
comment on column tidemark.worker_cursor.shard is 'Part of the source, from 0.';
comment on column tidemark.worker_cursor.watermark_ts is 'Time part of the watermark; null for the outbox.';
comment on column tidemark.worker_cursor.watermark_id is 'Id part of the watermark, as text, compared in the type of the source''s id; null: at the beginning. For the outbox: the number read up to.';
comment on column tidemark.worker_cursor.decided_through is 'For the outbox the highest watermark ever reached: above it a batch is new; below it, after a rewind, what is already decided is subtracted. For a table the watermark as last settled: where the two differ, somebody has edited it by hand.';
comment on column tidemark.worker_cursor.holes is 'Numbers that had not shown up when the cursor passed, and whose fence is not noted yet.';
comment on column tidemark.worker_cursor.fenced is 'Numbers that had not shown up when fence was noted: delivered when they appear, dropped when no member of the fence is left.';
comment on column tidemark.worker_cursor.fence is 'Virtual transaction ids that could still own a number of fenced.';
comment on column tidemark.worker_cursor.last_run_at is 'Last pass, with or without work.';
comment on column tidemark.worker_cursor.last_run_summary is 'What that pass did.';
comment on column tidemark.worker_cursor.events_seen is 'Events read so far.';
comment on column tidemark.worker_cursor.attempts_written is 'Pieces of evidence written so far.';
comment on column tidemark.worker_cursor.settles is 'Number of the latest settle by an owner of a lease: one that comes again, late or because its answer was lost, does nothing.';
comment on column tidemark.worker_cursor.dead_lettered is 'Dead letters written so far.';
comment on column tidemark.worker_cursor.horizon is 'Rows with a timestamp at or above it were left for later by the last pass; null for the outbox and for the safety sequence.';
comment on column tidemark.worker_cursor.sweep is 'State of the reconciling sweep: xmin (rows of older transactions were seen by the sweep before), and while one runs next_xmin, segment, ts and id (how far it has come).';
comment on column tidemark.worker_cursor.verified_through is 'Up to here the rows in the table were counted and are as many as were handled. Null: nothing was counted yet, or the source has no sweep.';
comment on column tidemark.worker_cursor.phase is 'seeding (what was there at first), reconciling (what changed meanwhile) or incremental (default).';
comment on column tidemark.worker_cursor.metadata is 'Configuration and notes of the worker''s owner.';
comment on column tidemark.worker_cursor.paused_at is 'Set: the worker does not run. Null (default): it runs.';
comment on column tidemark.worker_cursor.created_at is 'When the cursor was made.';
comment on column tidemark.worker_cursor.updated_at is 'When it last changed.';
insert into tidemark.worker_cursor (worker, source) values ('default', 'outbox');
insert into tidemark.heartbeat (executor_id) values ('default/outbox/0');

create type tidemark.outcome as enum ('skipped', 'disabled', 'dry_run', 'pending', 'sent', 'failed');
comment on type tidemark.outcome is 'What became of one event on one route: skipped (no route), disabled, dry_run, pending (to be delivered), sent, failed (dead-lettered).';

create type tidemark.gates as (master boolean, worker boolean, armed boolean);
comment on type tidemark.gates is 'State of everything that can forbid a worker to route: the master gate, the worker''s gate, and whether this cluster is armed.';

create type tidemark.event_group as (
    domain text,
    type text,
    stream text,
    matched integer[],
    events integer,
    seqs int8multirange
);
comment on type tidemark.event_group is 'Events of a batch that every route treats alike: same domain, type, stream, and filters passed (ids of routes with a filter). One decision serves them all.';

create type tidemark.batch as (
    watermark bigint,
    events integer,
    late integer,
    rewound boolean,
    holes int8multirange,
    fenced int8multirange,
    fence text[],
    groups tidemark.event_group[],
    seqs int8multirange,
    routes tidemark.outbound_route[],
    blocked_by text
);
comment on type tidemark.batch is 'What tidemark.read_outbox read: the events in groups (seqs: the numbers of all of them), the routes that were looked at for that, and the cursor as it will be once they are settled. blocked_by names what keeps too many holes open; null: nothing.';

create type tidemark.evidence as (
    route_id integer,
    outcome tidemark.outcome,
    reason text,
    detail text,
    events integer,
    seqs int8multirange
);
comment on type tidemark.evidence is 'The same outcome for the events numbered seqs on one route. route_id 0: no route.';

grant select on tidemark.heartbeat_kind, tidemark.heartbeat, tidemark.worker_cursor
    to tidemark_reader, tidemark_executor;
grant insert, delete on tidemark.heartbeat_kind to tidemark_admin;
