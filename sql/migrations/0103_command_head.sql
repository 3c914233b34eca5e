-- Of the parked commands of an ordering key one alone is due: two sessions that parked the first one at once made two, and the later ran twice.

set local role tidemark_owner;

lock table tidemark.command_parked in share row exclusive mode;
update tidemark.command_parked p set next_attempt_at = 'infinity'
where p.next_attempt_at < 'infinity' and exists (
    select from tidemark.command_parked q
    where q.service = p.service and q.key = p.key and q.position < p.position and q.next_attempt_at < 'infinity');
create unique index command_parked_head on tidemark.command_parked (service, key) where next_attempt_at < 'infinity';

drop function if exists tidemark.command_park;
