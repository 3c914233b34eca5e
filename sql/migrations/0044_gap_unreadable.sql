-- Rows of a gap that jsonb cannot hold stay in it, by name, when the others are emitted.

set local role tidemark_owner;

alter table tidemark.capture_gap add column unreadable text[] not null default '{}';
comment on column tidemark.capture_gap.unreadable is
'Keys of rows that cannot be emitted, since jsonb does not hold them, each with the SQLSTATE: as of the last tidemark.capture_gap_emit, 1,000 at most.';
