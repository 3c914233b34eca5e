-- Pages, the watch and polls read less: open dead letters from their index alone, the history of all routes together, and
-- quiet tables less often.

set local role tidemark_owner;

drop index tidemark.dead_letter_open_route;
create index dead_letter_open_route on tidemark.dead_letter (route_id, last_failed_at)
    include (id, error_code, first_failed_at) where resolved_at is null;

alter table tidemark.log_minute add column ends xid8;
comment on column tidemark.log_minute.ends is 'The transaction that noted it: once all before it are over, nothing adds to the minute in tidemark.route_minute any more. Null: not known.';
comment on table tidemark.route_minute is 'What each route, and all of them together, did, by the minute; by the hour once it is a day old. Kept for a week. Shown by tidemark.history.';
comment on column tidemark.route_minute.route_id is 'tidemark.outbound_route.id; 0: all routes. Its newest row ends what tidemark.maintain has added up so far: what is newer is added up where it is shown.';

-- Their parameters change.
drop function if exists tidemark.cause_lag, tidemark.poll;
