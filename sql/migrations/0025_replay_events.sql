-- How many events a replay is to send, so that status can say how far it is.

set local role tidemark_owner;

alter table tidemark.replay_job add column events bigint;
comment on column tidemark.replay_job.events is 'Events that go, as counted when it was asked for; null: there were more than were counted.';

drop view if exists tidemark.replay_summary;
