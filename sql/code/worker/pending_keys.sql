create or replace function tidemark.pending_keys(worker text, max_keys integer)
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
    -- Rows looked at per route: this is asked at each claim, and must not cost more the more there is pending.
    most constant bigint := 10 * max_keys::bigint;
begin
    return query
    with counted as materialized (
        select r.id, k.key, k.events
        from tidemark.outbound_route r
        cross join lateral (
            select p.key, count(*) as events
            from (select p.key from tidemark.pending p
                  where p.worker_id = of_worker and p.route_id = r.id and p.key is not null and not p.replay
                  limit most + 1) p
            group by p.key) k
    ), sized as (
        -- The routes with the fewest keys are known, as far as they go.
        select s.id, s.events, sum(s.keys) filter (where s.events <= most) over (order by s.keys, s.id) as keys_so_far
        from (select c.id, count(*) as keys, sum(c.events) as events from counted c group by c.id) s
    )
    select s.id, c.key, coalesce(c.events, s.events::bigint)
    from sized s left join counted c on c.id = s.id and s.events <= most and s.keys_so_far <= max_keys;
end
$$;
comment on function tidemark.pending_keys(text, integer) is
    'Ordering keys with events pending on a route, and how many, at most max_keys of them in all: what an owner of '
    'the cursor has to know before it delivers in order. A route that has too many of them, or more than ten times as '
    'many events, has one row with key null and a number of events that is a lower bound. Replays do not count: they '
    'are outside the order of keys.';
grant execute on function tidemark.pending_keys(text, integer) to tidemark_executor;
