-- tidemark.stale_check locks the row of an executor, which is made with the executor's heartbeat.

set local role tidemark_owner;

insert into tidemark.silence (executor_id) select h.executor_id from tidemark.heartbeat h on conflict do nothing;
comment on table tidemark.silence is 'What tidemark.stale_check knows of each executor, and the row that it locks while it tells of one.';
comment on column tidemark.silence.told_at is 'When its silence was last told by an event; null: never.';
