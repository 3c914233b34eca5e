-- Replays are outside the order of keys: they block no live event and wait behind none.

set local role tidemark_owner;

alter table tidemark.pending add column replay boolean not null default false;
update tidemark.pending set replay = true where dead_letter_id is not null;
alter table tidemark.pending add constraint dead_letter_is_replayed check (replay or dead_letter_id is null);
comment on column tidemark.pending.replay is 'An operator sends the event again: it is outside the order of its key.';

drop index tidemark.pending_key;
create index pending_key on tidemark.pending (worker_id, route_id, key, seq) where key is not null and not replay;
-- A million replays that are due must not stand between the worker and the live events, nor the other way round.
create index pending_live on tidemark.pending (route_id, next_attempt_at) where not replay;
create index pending_replay on tidemark.pending (route_id, next_attempt_at) where replay;

-- Their results have other columns now.
drop function if exists tidemark.pass_read;
drop function if exists tidemark.pending_keys;
