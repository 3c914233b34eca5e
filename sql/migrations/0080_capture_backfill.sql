-- The rows that a captured table has become events, before and between those of its changes.

set local role tidemark_owner;

create table tidemark.capture_backfill (
    id bigint generated always as identity primary key,
    relation oid not null,
    name text not null,
    domain text not null,
    type text not null,
    reason text not null,
    key_columns text[] not null,
    begun_at timestamptz not null default pg_catalog.clock_timestamp(),
    begun_by text not null,
    snapshot pg_snapshot not null,
    known_to bigint not null,
    known_next bigint not null,
    fence text[] not null default '{}',
    upto text[],
    rows bigint not null default 0,
    left_out bigint not null default 0,
    finished_at timestamptz,
    cancelled_at timestamptz,
    constraint over_once check (finished_at is null or cancelled_at is null)
);
create unique index capture_backfill_open on tidemark.capture_backfill (name)
    where finished_at is null and cancelled_at is null;
comment on table tidemark.capture_backfill is 'Rows of captured tables that become events (tidemark.capture_backfill_step). One open row for a table.';
comment on column tidemark.capture_backfill.id is 'Number.';
comment on column tidemark.capture_backfill.relation is 'The table.';
comment on column tidemark.capture_backfill.name is 'Its quoted name.';
comment on column tidemark.capture_backfill.domain is 'Domain of the events: that of the table''s inbound route for inserts.';
comment on column tidemark.capture_backfill.type is 'Type of the events.';
comment on column tidemark.capture_backfill.reason is 'Why, as given.';
comment on column tidemark.capture_backfill.key_columns is 'Columns of the primary key when it began, in their order: number, name, type, collation.';
comment on column tidemark.capture_backfill.begun_at is 'When it began.';
comment on column tidemark.capture_backfill.begun_by is 'Who began it.';
comment on column tidemark.capture_backfill.snapshot is 'What was visible then, while no transaction wrote the table: a row that is older has no event of its own since.';
comment on column tidemark.capture_backfill.known_to is 'The keys of events since the beginning, up to this number, are in tidemark.capture_backfill_key.';
comment on column tidemark.capture_backfill.known_next is 'The next known_to, once no member of fence is left.';
comment on column tidemark.capture_backfill.fence is 'Virtual transaction ids that could still own a number up to known_next.';
comment on column tidemark.capture_backfill.upto is 'Primary key of the last row that was read, as text; null: none.';
comment on column tidemark.capture_backfill.rows is 'Rows that became events.';
comment on column tidemark.capture_backfill.left_out is 'Rows that had an event of their own since the beginning.';
comment on column tidemark.capture_backfill.finished_at is 'When the last row had been read; null: not yet.';
comment on column tidemark.capture_backfill.cancelled_at is 'When it was given up; null: it was not.';
grant select on tidemark.capture_backfill to tidemark_reader, tidemark_admin;

create table tidemark.capture_backfill_key (
    backfill_id bigint not null references tidemark.capture_backfill on delete cascade,
    ref text not null,
    primary key (backfill_id, ref)
);
comment on table tidemark.capture_backfill_key is 'Rows that have an event of their own since an open backfill of their table began.';
comment on column tidemark.capture_backfill_key.backfill_id is 'tidemark.capture_backfill.id.';
comment on column tidemark.capture_backfill_key.ref is 'Primary key of the row, as tidemark.outbox.subject_ref.';
