create or replace function tidemark.left_over(
    route tidemark.outbound_route,
    shard integer,
    out numbers bigint[],
    out suspects integer[],
    out errors integer[],
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
begin
    with due as materialized (
        select p.seq, p.suspects, p.error_count,
               case when (left_over.route).ordering = 'key' and not p.replay then p.key end as in_order
        from tidemark.pending p
        where p.worker_id = worker_ and p.route_id = (left_over.route).id and p.shard = left_over.shard
          and not p.held and (p.domain = any (closed)) is not true
          and (p.next_attempt_at <= at or p.next_attempt_at = 'infinity' and (left_over.route).ordering = 'key')
    ), barred as (
        -- The first of each key that may not go yet. All before it are due, so this reads no more than due has read:
        -- between, as only the index of keys has that order.
        select e.seq, k.key
        from (select distinct d.in_order as key from due d where d.in_order is not null) k
        cross join lateral (
            select e.seq from tidemark.pending e
            where e.worker_id = worker_ and e.route_id = (left_over.route).id and e.key between k.key and k.key
              and not e.replay
              and (e.held or e.domain = any (closed) or e.next_attempt_at > at and e.next_attempt_at <> 'infinity')
            order by e.key, e.seq limit 1) e
    )
    select coalesce(array_agg(q.seq), '{}'), coalesce(array_agg(q.suspects), '{}'),
           coalesce(array_agg(q.error_count), '{}')
    into numbers, suspects, errors
    from (
        select o.seq, o.suspects, o.error_count from (
            -- What waits behind the first of a key goes with it, in order. This sorts and does not join, since the
            -- planner does not know how many keys there are.
            select u.seq, u.suspects, u.error_count,
                   u.in_order is not null and bool_or(u.bars) over (partition by u.in_order order by u.seq) as behind
            from (select d.seq, d.suspects, d.error_count, d.in_order, false as bars from due d
                  union all
                  select b.seq, null, null, b.key, true from barred b) u) o
        where not o.behind
        order by o.seq limit most) q;
    more := cardinality(numbers) = most;
    gone := exists (
        select from unnest(numbers) n where not exists (select from tidemark.outbox o where o.seq = n));
end
$$;
comment on function tidemark.left_over(tidemark.outbound_route, integer) is
    'What earlier passes have left over of a route to a target inside the database, and is due, but for domains whose '
    'gate is closed: numbers, the first 5,000 (more: that many), with their suspects and failed attempts; gone: some '
    'have no event in the log any more.';
grant execute on function tidemark.left_over(tidemark.outbound_route, integer) to tidemark_executor;
