-- The beat that ends a pass over a table renews the lease, and some functions have become part of their only caller.

set local role tidemark_owner;

alter type tidemark.source_plan add attribute lease interval;
comment on column tidemark.source_plan.lease is 'How long the lease lasts after the pass; null: unchanged.';

drop function if exists tidemark.source_unread_take;
drop function if exists tidemark.cursor_sample_take;
drop function if exists tidemark.pending_at;
delete from tidemark.code where object in ('source_unread_take', 'cursor_sample_take', 'pending_at');

-- Comments in plainer English.
comment on table tidemark.heartbeat is 'One row per executor: its last sign of life, and the owner of its lease. Source: S4 queue_heartbeat.';
comment on column tidemark.heartbeat.last_status is 'Status that its last beat reported.';
comment on column tidemark.heartbeat.lease_owner is 'Instance that holds the lease; null: none.';
comment on column tidemark.code.installed is 'MD5 of the definition as the catalog shows it after the file ran; a difference later means that an operator changed the object by hand.';
comment on column tidemark.outbox.actor is 'The person or program that acts. Default: session_user.';
comment on column tidemark.worker.read_order is 'eager (default): passes numbers that are still open and returns to them. strict: waits at the first open number.';
comment on column tidemark.worker_cursor.decided_through is 'For the outbox the highest watermark ever reached: above it a batch is new; below it, after a rewind, the events that were decided before are left out. For a table the watermark as last settled: if the two differ, the watermark was edited by hand.';
comment on column tidemark.silence.told_at is 'When an event last reported its silence; null: never.';
comment on column tidemark.finding.acked_at is 'When an operator acknowledged it; null: not yet. It is still open.';
comment on column tidemark.inbound_route.type is 'Type of the events. While it is not registered or not enabled, no events are made, and tidemark.captured counts the changes.';
comment on column tidemark.captured.reason is 'Why the changes made no events. Never a value of the row.';
comment on column tidemark.capture_gap.resolved_by is 'The role that resolved it.';
