-- A replay with which a new route begins has all events that passes have read without knowing the route.

set local role tidemark_owner;

alter table tidemark.replay_job add column open_end boolean not null default false;
comment on column tidemark.replay_job.open_end is 'True: last_seq is not set yet. It is the highest number of the log when the replay begins: all passes that read on from there know the route.';
comment on column tidemark.replay_job.last_seq is 'Last number of the span, at most the place of the worker''s foremost shard when the replay was asked for; see open_end.';
comment on column tidemark.replay_job.events is 'Events that go, as counted when it was asked for; null: there were more than were counted, or its end was open.';
