-- Whether a worker of the log has work, checked in the order of a pass (tidemark.pass_read, tidemark.read_outbox). A
-- pass reads at once instead of calling this: the extra check would cost each pass more than it saves.
-- TestPollAgreesWithPassesOfTheLog compares the two.
create or replace function tidemark.log_next(worker text, shard integer default 0)
returns text
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
-- Look for the first in the order of an index. A plan of when little waited would read all that waits.
set enable_seqscan = off
set enable_sort = off
set jit = off
as $$
#variable_conflict use_column
declare
    me constant integer := (select w.id from tidemark.worker w where w.worker = log_next.worker);
    c constant tidemark.worker_cursor := (
        select c from tidemark.worker_cursor c
        where c.worker = log_next.worker and c.source = 'outbox' and c.shard = log_next.shard);
    open constant int8multirange := c.holes + c.fenced;
    clock constant timestamptz := clock_timestamp(); -- which an index can use as a condition
begin
    return case
        when tidemark.log_gate(log_next.worker, log_next.shard) is not null then 'closed'
        when tidemark.cursor_edited(c) then 'edited'
        when exists (
            select from tidemark.outbound_route r
            cross join unnest(array[false, true]) k (replay)
            cross join lateral (
                select from tidemark.pending p
                where p.route_id = r.id and p.worker_id = me and p.shard = log_next.shard
                  and p.replay = k.replay and p.next_attempt_at <= clock order by p.next_attempt_at limit 1) p
            where r.worker = log_next.worker and tidemark.route_delivers(r)) then 'retry'
        -- Events that were held while a domain's gate was closed.
        when exists (
            select from (select from tidemark.pending p
                         where p.worker_id = me and p.shard = log_next.shard and p.held
                         order by p.domain, p.seq limit 1) p) and exists (
            select from tidemark.domain d cross join lateral (
                select from tidemark.pending p
                where p.worker_id = me and p.shard = log_next.shard and p.held and p.domain = d.domain
                order by p.seq limit 1) p
            where d.domain <> all ((select tidemark.closed_domains())::text[])) then 'retry'
        when log_next.shard = 0 and exists (
            select from tidemark.replay_job j join tidemark.outbound_route r on r.id = j.route_id
            where j.worker_id = me and j.finished_at is null and j.due_at <= clock
              and r.worker = log_next.worker and tidemark.route_delivers(r)
              -- Else it waits for a shard, or for numbers that are open.
              and (j.open_end or j.passed_seq >= j.last_seq
                   or j.passed_seq < tidemark.replay_bound(log_next.worker, j.outcomes))
              and not exists (select from tidemark.pending p where p.replay_id = j.id)) then 'replay'
        when c.watermark_id::bigint < (select max(o.seq) from tidemark.outbox o) then 'events'
        when exists (
            select from unnest(open) hole (span) cross join lateral (
                select from tidemark.outbox o
                where o.seq >= lower(hole.span) and o.seq < upper(hole.span) limit 1) o) then 'holes'
        when not isempty(open) and (isempty(c.fenced) or tidemark.fence_closed(c.fence)) then 'holes' end;
end
$$;
comment on function tidemark.log_next(text, integer) is
    'Why a pass over a shard of a worker of the log has work: closed (the worker must give its lease back), edited '
    '(likewise), retry, replay (a replay has more events to stage), events, holes (numbers below the watermark have '
    'appeared, or were rolled back). Null: it has none.';
grant execute on function tidemark.log_next(text, integer) to tidemark_executor;
