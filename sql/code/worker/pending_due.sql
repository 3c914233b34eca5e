create or replace function tidemark.pending_due(
    worker text, worker_id integer, rooms integer[], room_of integer[], shard integer)
returns tidemark.pending[]
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
set jit = off
as $$
declare
    -- A constant: an index cannot use a condition that calls clock_timestamp(), and all that waits would be read.
    clock constant timestamptz := clock_timestamp();
    closed constant text[] := tidemark.closed_domains();
    -- How many rows to skip that tidemark.pending_hold has not held yet: each of its calls holds the same number.
    past constant integer := case when cardinality(closed) > 0 then 5000 else 0 end;
begin
    -- Use only the indexes, in their order, and read no further than there is room. A table that was small when this
    -- was planned, or last analyzed, seems cheap to sort, and each pass would then read all pending rows.
    return array(
        select p
        from tidemark.outbound_route r
        cross join lateral (select coalesce(
            (select f.n from unnest(rooms, room_of) f (route_id, n) where f.route_id = r.id limit 1), 100) as n) room
        cross join lateral (
            with first as materialized (
                select f.p, row_number() over () as place from (
                    select o.p from (
                        select p, p.next_attempt_at as at from tidemark.pending p
                        where p.route_id = r.id and p.next_attempt_at <= clock
                          and p.worker_id = pending_due.worker_id and p.shard = pending_due.shard
                          and not p.replay
                          -- Where order is kept, take only the first event of a key, even if later ones are due.
                          -- Only the index of keys has the order by key.
                          and not (r.ordering = 'key' and p.key is not null and p.seq > (
                              select e.seq from tidemark.pending e
                              where e.worker_id = p.worker_id and e.route_id = p.route_id
                                and e.key between p.key and p.key and not e.replay
                              order by e.key, e.seq limit 1))
                        order by p.next_attempt_at limit room.n + past) o
                    where ((o.p).domain = any (closed)) is not true order by o.at limit room.n) f
            ), live as materialized (
                select d.p from (
                    select f.p, f.place from first f
                    union all
                    -- Add the events that wait behind them, in order, so that a delayed key catches up in runs, not one
                    -- by one.
                    select q.p, f.place from first f
                    cross join lateral (
                        select run.p from (
                            select n.p, count(*) filter (where n.waits) over (order by (n.p).seq) as held
                            from (
                                select q as p, q.held or q.domain = any (closed)
                                    or q.next_attempt_at > clock
                                                   and q.next_attempt_at <> 'infinity' as waits
                                from tidemark.pending q
                                where r.ordering = 'key' and room.n > 1
                                  and q.worker_id = pending_due.worker_id and q.route_id = r.id
                                  and q.key between (f.p).key and (f.p).key
                                  and q.seq > (f.p).seq and not q.replay
                                order by q.key, q.seq limit 50) n) run
                        where run.held = 0) q) d
                order by d.place, (d.p).seq limit room.n)
            select l.p from live l
            union all
            -- Replays get the room that live events leave, and always at least a tenth.
            select a.p from (
                select o.p from (
                    select a as p, a.next_attempt_at as at from tidemark.pending a
                    where a.route_id = r.id and a.next_attempt_at <= clock
                      and a.worker_id = pending_due.worker_id and a.shard = pending_due.shard
                      and a.replay
                    order by a.next_attempt_at limit room.n + past) o
                where ((o.p).domain = any (closed)) is not true
                order by o.at limit greatest(room.n - (select count(*) from live), room.n / 10)) a) due (p)
        where r.worker = pending_due.worker and tidemark.route_delivers(r)
          and not tidemark.target_is_inside(r.target_kind));
end
$$;
comment on function tidemark.pending_due(text, integer, integer[], integer[], integer) is
    'The pending events that are due on the worker''s live routes that are not paused, of domains whose gate is open, '
    'live events first: at most 100 a route, or room_of for those in rooms. They include up to 50 events that wait '
    'behind an event of a key. Replays get the room that is left, and at least a tenth.';
