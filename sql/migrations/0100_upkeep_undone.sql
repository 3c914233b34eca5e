-- What tidemark.maintain has left undone of the partitions of the log.

set local role tidemark_owner;

alter table tidemark.storage_sample add column undone text, add column undone_since timestamptz;
comment on column tidemark.storage_sample.undone is 'What the last call had to leave undone of the partitions of the log. Null: nothing.';
comment on column tidemark.storage_sample.undone_since is 'Since when each call has left something of it undone.';
