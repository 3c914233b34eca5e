create or replace function tidemark.left_over(
    route tidemark.outbound_route,
    shard integer,
    out numbers bigint[],
    out suspects integer[],
    out errors integer[],
    out behind int8multirange,
    out more boolean,
    out gone boolean)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_sort = off
set jit = off
as $$
declare
    most constant integer := 5000;
    at constant timestamptz := clock_timestamp();
    worker_ constant integer := (select w.id from tidemark.worker w where w.worker = route.worker);
    -- What tidemark.pending_hold has not put aside yet stays where it is too.
    closed constant text[] := tidemark.closed_domains();
    -- How many rows to skip that it has not put aside: each of its calls holds the same number.
    past constant integer := case when cardinality(closed) > 0 then 5000 else 0 end;
begin
    -- Use only the indexes, in their order, and read no further than this can return, however much waits.
    with due as materialized (
        select p.seq, p.suspects, p.error_count, p.next_attempt_at <= at as is_due,
               case when (left_over.route).ordering = 'key' and not p.replay then p.key end as in_order
        from (values (false), (true)) of_kind (replay)
        cross join lateral (
            (select q.seq, q.suspects, q.error_count, q.next_attempt_at, q.key, q.replay, q.held, q.domain
             from tidemark.pending q
             where q.route_id = (left_over.route).id and q.replay = of_kind.replay and q.next_attempt_at <= at
               and q.worker_id = worker_ and q.shard = left_over.shard
             order by q.next_attempt_at limit most + past)
            union all
            (select q.seq, q.suspects, q.error_count, q.next_attempt_at, q.key, q.replay, q.held, q.domain
             from tidemark.pending q
             where q.route_id = (left_over.route).id and q.replay = of_kind.replay and q.next_attempt_at = 'infinity'
               and q.worker_id = worker_ and q.shard = left_over.shard and (left_over.route).ordering = 'key'
             order by q.next_attempt_at limit most)) p
        where not p.held and (p.domain = any (closed)) is not true
    ), keys as materialized (
        select d.in_order as key, 1 + 2 * most / count(*) over () as room
        from due d where d.in_order is not null group by d.in_order
    ), run as materialized (
        -- Of each key the first ones, up to one that may not go yet. What waits behind the first goes with it, in
        -- order: between, as only the index of keys has that order.
        select n.*, k.key, count(*) filter (where n.bars) over (partition by k.key order by n.seq) > 0 as behind
        from keys k
        cross join lateral (
            select e.seq, e.suspects, e.error_count, e.shard,
                   e.held or e.domain = any (closed) or e.next_attempt_at > at and e.next_attempt_at <> 'infinity'
                       as bars
            from tidemark.pending e
            where e.worker_id = worker_ and e.route_id = (left_over.route).id and e.key between k.key and k.key
              and not e.replay
            order by e.key, e.seq limit k.room) n
    )
    select coalesce(array_agg(q.seq), '{}'), coalesce(array_agg(q.suspects), '{}'),
           coalesce(array_agg(q.error_count), '{}'),
           (select coalesce(range_agg(int8range(d.seq, d.seq + 1)), '{}')
            from (select r.key, min(r.seq) as seq from run r where r.bars group by r.key) bar
            join due d on d.in_order = bar.key and d.seq > bar.seq
            where d.is_due)
    into numbers, suspects, errors, behind
    from (
        select o.seq, o.suspects, o.error_count from (
            select r.seq, r.suspects, r.error_count from run r where not r.behind and r.shard = left_over.shard
            union all
            select d.seq, d.suspects, d.error_count from due d where d.in_order is null) o
        order by o.seq limit most) q;
    more := cardinality(numbers) = most;
    gone := exists (
        select from unnest(numbers) n where not exists (select from tidemark.outbox o where o.seq = n));
end
$$;
comment on function tidemark.left_over(tidemark.outbound_route, integer) is
    'What earlier passes have left over of a route to a target inside the database, and is due, but for domains whose '
    'gate is closed: numbers, at most 5,000 (more: that many), in rising order, with their suspects and failed '
    'attempts; behind: some that are due and may not go before another one of their key, which is not; gone: some have '
    'no event in the log any more.';
grant execute on function tidemark.left_over(tidemark.outbound_route, integer) to tidemark_executor;
