create or replace function tidemark.pending_keys(worker text, max_keys integer, shard integer default 0)
returns table (route_id integer, key text, events bigint)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
set jit = off
as $$
#variable_conflict use_column
declare
    of_worker constant integer := (select w.id from tidemark.worker w where w.worker = pending_keys.worker);
    -- Read at most this many rows per route: each claim calls this, and its cost must not grow with the pending events.
    most constant bigint := 10 * max_keys::bigint;
begin
    return query
    with counted as materialized (
        select r.id, k.key, k.events
        from tidemark.outbound_route r
        cross join lateral (
            select p.key, count(*) as events
            from (select p.key from tidemark.pending p
                  where p.worker_id = of_worker and p.route_id = r.id and p.shard = pending_keys.shard
                    and p.key is not null and not p.replay
                  limit most + 1) p
            group by p.key) k
    ), sized as (
        -- Return keys for the routes with the fewest keys first, while they fit.
        select s.id, s.events, sum(s.keys) filter (where s.events <= most) over (order by s.keys, s.id) as keys_so_far
        from (select c.id, count(*) as keys, sum(c.events) as events from counted c group by c.id) s
    )
    select s.id, c.key, coalesce(c.events, s.events::bigint)
    from sized s left join counted c on c.id = s.id and s.events <= most and s.keys_so_far <= max_keys;
end
$$;
comment on function tidemark.pending_keys(text, integer, integer) is
    'Ordering keys with events pending on a route, and the number of events, at most max_keys keys in all: an owner of '
    'the cursor needs them before it delivers in order. A route with too many keys, or with more than ten times as '
    'many events, has one row with key null and a number of events that is a lower bound. Replays do not count: they '
    'are outside the order of keys.';
grant execute on function tidemark.pending_keys(text, integer, integer) to tidemark_executor;
