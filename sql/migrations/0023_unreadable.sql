-- An event that a worker cannot read within its lease is a dead letter that leaves the payload where it is.

set local role tidemark_owner;

alter table tidemark.dead_letter
    add column payload_in_log boolean not null default false,
    add constraint payload_is_of_an_event check (not payload_in_log or event_id is not null);
comment on column tidemark.dead_letter.payload_in_log is 'The snapshot has no payload, since a worker could not read it in time (unreadable): a replay takes it from the log, whose partition is kept while the letter is open.';
comment on column tidemark.dead_letter.event_snapshot is 'The event as tidemark.event_json shows it, or the row as JSON, so that a replay needs no row of the log; without its payload where payload_in_log says so. Of an event that is gone what its pending delivery knew: seq, route, key, pending_since, attempts, last_error.';
create index dead_letter_in_log on tidemark.dead_letter (seq) where payload_in_log and resolved_at is null;
grant select (payload_in_log) on tidemark.dead_letter to tidemark_reader, tidemark_executor;

-- One index has live deliveries and replays apart: each in the order in which it is due, by route.
drop index tidemark.pending_due, tidemark.pending_live, tidemark.pending_replay;
create index pending_due on tidemark.pending (route_id, replay, next_attempt_at);

update tidemark.setting
set description = 'Bytes of payload that a worker takes at once: in a page of the log for deliveries outside the database, in a statement for a target inside, in the columns of a page of a table. A single event or row may have more. At least 65536.'
where key = 'batch.max_bytes';

-- It has a new column and new parameters.
drop function if exists tidemark.pass_read;
