-- Since when a job of dead letters gets nowhere: it is a cause of trouble after a while.

set local role tidemark_owner;

alter table tidemark.letter_job add column waits_since timestamptz;
comment on column tidemark.letter_job.waits_since is 'Since when no part was done; null: the last one was.';
