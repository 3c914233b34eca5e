-- Targets inside the database have a time limit: what a delivery that takes too long leaves behind.

set local role tidemark_owner;

alter table tidemark.pending add column suspects integer constraint suspects_is_positive check (suspects > 0);
comment on column tidemark.pending.suspects is 'How many events the statement had that was cut off, since it took too long, this one among them: it is tried again with fewer. Null: no such. For targets inside the database.';
create index pending_suspect on tidemark.pending (route_id) where suspects is not null;
comment on table tidemark.pending is 'Events that a target is still to get: one outside the database, or one inside that was too slow for the pass or had its gate closed. Source: S2 event_pending.';
comment on column tidemark.decision.reason is 'Closed set: no_route, or why a route that does not fail closed was skipped; why it is pending: behind_key, busy, breaker_open, gate_closed, suspect (the statement that it was in took too long); null where the outcome says it all.';
comment on column tidemark.outbound_route.timeout is 'Longest time for one delivery, and inside the database for one wait for a lock. Default 10 seconds.';

drop function if exists tidemark.target_call;
drop function if exists tidemark.deliver;
drop function if exists tidemark.deliver_inside;
drop function if exists tidemark.left_over;
drop function if exists tidemark.pass_summary;
drop function if exists tidemark.pass_read;
