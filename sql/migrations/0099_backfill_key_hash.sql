-- Two keys of several columns may have the same text: the rows of an open backfill that have events are kept with a hash of their key.

set local role tidemark_owner;

alter table tidemark.capture_backfill_key add column key_hash bytea not null default '';
comment on column tidemark.capture_backfill_key.key_hash is 'SHA-256 of a key of several columns as JSON. Empty: a key of one column, or only its text is known.';
alter table tidemark.capture_backfill_key drop constraint capture_backfill_key_pkey;
alter table tidemark.capture_backfill_key add primary key (backfill_id, ref, key_hash);

drop function if exists tidemark.capture_backfill_known;
