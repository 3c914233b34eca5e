-- Whether a worker has open dead letters is asked at each look: it costs nothing of those of other workers. The open end of a replay is set by
-- maintain too, so that it keeps no payloads for as long as its route is off.

set local role tidemark_owner;

comment on column tidemark.replay_job.open_end is 'True: last_seq is not set yet. It is the highest number of the log when the replay begins, or at the next tidemark.maintain: all passes that read on from there know the route.';

create index dead_letter_open_worker on tidemark.dead_letter (worker_id, error_code, source, shard) where resolved_at is null;
