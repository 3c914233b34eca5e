-- A pending delivery whose event is gone from the log is a dead letter that knows little of it.

set local role tidemark_owner;

alter table tidemark.dead_letter
    drop constraint event_or_row,
    add constraint event_or_row check (
        source = 'outbox' and route_id is not null and seq is not null and item_id is null
        and (event_id is not null or error_code = 'event_missing')
        or source <> 'outbox' and route_id is null and seq is null and event_id is null and item_id is not null);
comment on column tidemark.dead_letter.idempotency_key is 'tm:{worker}:{route}:{event_id}; of an event that is gone tm:{worker}:{route}:seq-{seq}; of a row tm:{worker}:{source}:{item_id}.';
comment on column tidemark.dead_letter.event_id is 'Identity of the event; null for a row, and for an event that was gone from the log before it was delivered (event_missing).';
comment on column tidemark.dead_letter.event_snapshot is 'The event as tidemark.event_json shows it, or the row as JSON, so that a replay needs no row of the log. Of an event that is gone what its pending delivery knew: seq, route, key, pending_since, attempts, last_error.';

-- Its result has a new column.
drop function if exists tidemark.pass_read;
