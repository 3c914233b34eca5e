-- Replays of dead letters page by page, and what a rewind would do.

set local role tidemark_owner;

drop function if exists tidemark.dead_letter_replay_many;
drop function if exists tidemark.worker_rewind;

-- The order of replays: of the events, then of the rows by their time.
create index dead_letter_in_order on tidemark.dead_letter
    (coalesce(seq, 9223372036854775807), coalesce(route_id, 0), coalesce(item_ts, 'infinity'), id) where resolved_at is null;
