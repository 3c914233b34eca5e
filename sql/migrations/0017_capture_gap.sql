-- Changes of captured tables without events stay on record until they are emitted or accepted.

set local role tidemark_owner;

create table tidemark.capture_gap (
    id bigint generated always as identity primary key,
    relation oid not null,
    name text not null,
    since timestamptz not null,
    snapshot pg_snapshot not null,
    keys text[] not null default '{}',
    rows bigint not null default 0,
    others bigint not null default 0,
    sampled boolean not null default false,
    detail text not null,
    found_at timestamptz not null default pg_catalog.clock_timestamp(),
    emitted bigint not null default 0,
    resolved_at timestamptz,
    resolution text constraint resolution_is_known check (resolution in ('emitted', 'accepted')),
    resolved_by text,
    reason text,
    constraint resolved_is_whole check ((resolved_at is null) = (resolution is null) and (resolved_at is null) = (resolved_by is null))
);
create unique index capture_gap_open on tidemark.capture_gap (name) where resolved_at is null;
comment on table tidemark.capture_gap is
'Changes of captured tables that have no event. One open row for a table, which what is found later joins; it stays until its rows were emitted (tidemark.capture_gap_emit) or it was accepted (tidemark.capture_gap_accept).';
comment on column tidemark.capture_gap.id is 'Number.';
comment on column tidemark.capture_gap.relation is 'The table, when it was found.';
comment on column tidemark.capture_gap.name is 'Its quoted name.';
comment on column tidemark.capture_gap.since is 'The changes are younger than this.';
comment on column tidemark.capture_gap.snapshot is 'What was visible then.';
comment on column tidemark.capture_gap.keys is 'Keys of rows without event, 1,000 at most.';
comment on column tidemark.capture_gap.rows is 'Rows found without event.';
comment on column tidemark.capture_gap.others is 'Changes counted beyond these rows: deleted rows, updates, rows without a key. They can only be accepted.';
comment on column tidemark.capture_gap.sampled is 'True: there may be more rows than were looked at.';
comment on column tidemark.capture_gap.detail is 'What was found, latest.';
comment on column tidemark.capture_gap.found_at is 'When it was found first.';
comment on column tidemark.capture_gap.emitted is 'Rows emitted since.';
comment on column tidemark.capture_gap.resolved_at is 'When it was over; null: open.';
comment on column tidemark.capture_gap.resolution is 'emitted or accepted.';
comment on column tidemark.capture_gap.resolved_by is 'Who did it.';
comment on column tidemark.capture_gap.reason is 'Why, as given.';
grant select on tidemark.capture_gap to tidemark_reader, tidemark_executor;

alter table tidemark.capture_checkpoint add column name text;
comment on column tidemark.capture_checkpoint.name is 'The table''s quoted name: another table under it is not the one that was captured.';

drop function if exists tidemark.capture_reconciled;
drop function if exists tidemark.capture_reconcile;
