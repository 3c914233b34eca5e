-- Events that are due but must not be delivered would block others. The pass that meets them holds them.
create or replace function tidemark.pending_hold(worker text, closed text[], shard integer default 0)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
set jit = off
as $$
#variable_conflict use_column
declare
    most constant integer := 5000;
    worker_ constant integer := (select w.id from tidemark.worker w where w.worker = pending_hold.worker);
    at constant timestamptz := clock_timestamp();
    hold constant boolean := exists (
        select from unnest(closed) c (domain) cross join lateral (
            (select from tidemark.pending p
             where p.worker_id = worker_ and p.shard = pending_hold.shard and p.domain = c.domain and not p.held
               and p.next_attempt_at <= at limit 1)
            union all
            (select from tidemark.pending p
             where p.worker_id = worker_ and p.shard = pending_hold.shard and p.domain = c.domain and not p.held
               and p.next_attempt_at = 'infinity' limit 1)) p);
    ordered constant integer[] := array(
        select r.id from tidemark.outbound_route r where r.worker = pending_hold.worker and r.ordering = 'key');
    free text[];
    routes integer[];
    keys text[];
begin
    if exists (select from tidemark.pending p
               where p.worker_id = worker_ and p.shard = pending_hold.shard and p.held) then
        free := array(
            select d.domain from tidemark.domain d
            where d.domain <> all (closed)
              and exists (select from tidemark.pending p
                          where p.worker_id = worker_ and p.shard = pending_hold.shard and p.held
                            and p.domain = d.domain));
    end if;
    if not hold and coalesce(cardinality(free), 0) = 0 then
        return;
    end if;
    -- Lock the lease's row: settling is serial (tidemark.release_keys), and this is a part of it.
    perform from tidemark.heartbeat h
    where h.executor_id = tidemark.executor_id(pending_hold.worker, 'outbox', pending_hold.shard) for update;
    if hold then
        -- Hold the events that are due first, since they block others. Later passes hold the rest; until then
        -- tidemark.pending_due and tidemark.left_over skip it.
        update tidemark.pending p
        set held = true, next_attempt_at = 'infinity'
        where p.ctid = any (array(
            select h.ctid from unnest(closed) c (domain)
            cross join lateral (
                (select q.ctid, q.next_attempt_at from tidemark.pending q
                 where q.worker_id = worker_ and q.shard = pending_hold.shard and q.domain = c.domain and not q.held
                   and q.next_attempt_at <= at
                 order by q.next_attempt_at limit most)
                union all
                -- Also the events that wait behind the first event of a key.
                (select q.ctid, q.next_attempt_at from tidemark.pending q
                 where q.worker_id = worker_ and q.shard = pending_hold.shard and q.domain = c.domain and not q.held
                   and q.next_attempt_at = 'infinity'
                 limit most)) h
            order by h.next_attempt_at limit most));
    end if;
    -- In the order of numbers. Where order is kept, only the first event of a key becomes due (tidemark.settle_fresh).
    with freed as (
        update tidemark.pending p
        set held = false,
            next_attempt_at = case when p.key is not null and not p.replay and p.route_id = any (ordered)
                                        then 'infinity' else at end
        where p.ctid = any (array(
            select f.ctid from unnest(free) d (domain)
            cross join lateral (
                select q.ctid, q.seq from tidemark.pending q
                where q.worker_id = worker_ and q.shard = pending_hold.shard and q.held and q.domain = d.domain
                order by q.seq limit most) f
            order by f.seq limit most))
        returning p.route_id, p.key, p.next_attempt_at)
    select array_agg(f.route_id), array_agg(f.key) into routes, keys
    from (select distinct route_id, key from freed where next_attempt_at = 'infinity') f;
    if routes is not null then
        perform tidemark.release_keys(worker_, routes, keys);
    end if;
end
$$;
comment on function tidemark.pending_hold(text, text[], integer) is
    'Holds (held), at most 5,000 a call, the due events of the worker''s routes in domains whose gate is closed, and '
    'makes held events due again, at most 5,000 a call, in domains whose gate is open.';
grant execute on function tidemark.pending_hold(text, text[], integer) to tidemark_executor;
