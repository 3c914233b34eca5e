-- public
create or replace view tidemark.waiting as
select w.worker, 'outbox' as source, r.route_code, p.shard, p.seq::text as item, p.error_count,
       case when strpos(p.last_error, ': ') = 0 then p.last_error
            else split_part(p.last_error, ': ', 1) || ': '
                 || tidemark.error_shown(split_part(p.last_error, ': ', 1),
                                         substr(p.last_error, strpos(p.last_error, ': ') + 2),
                                         current_user) end collate "default" as last_error,
       p.next_attempt_at,
       p.dead_letter_id, p.created_at, p.held
from tidemark.pending p
join tidemark.worker w on w.id = p.worker_id
join tidemark.outbound_route r on r.id = p.route_id
union all
select w.worker, p.source, null, p.shard, p.item_id, p.error_count,
       case when strpos(p.last_error, ': ') = 0 then p.last_error
            else split_part(p.last_error, ': ', 1) || ': '
                 || tidemark.error_shown(split_part(p.last_error, ': ', 1),
                                         substr(p.last_error, strpos(p.last_error, ': ') + 2),
                                         current_user) end collate "default" as last_error,
       p.next_attempt_at, p.dead_letter_id, p.created_at, false
from tidemark.pending_row p
join tidemark.worker w on w.id = p.worker_id;
comment on view tidemark.waiting is
    'Events (source outbox, item: the number) and rows of sources (item: the id) that wait for their next attempt, '
    'with the last error and the earliest time. infinity: the event waits behind an earlier one of its key or, held, '
    'until the gate of its domain opens.';
grant select on tidemark.waiting to tidemark_reader, tidemark_executor;
