-- The cursor: a watermark, and the numbers below it that had not shown up when it passed.
--
-- Numbers are not handed out in the order of commits: when number 8 can be seen, 7 may still be in a
-- transaction under way. A plain watermark loses 7. Waiting for it stalls behind the slowest writer of the
-- cluster. So the cursor passes 8, writes 7 down as a hole, and comes back for it. A hole ends in one of two
-- ways: the event appears and is delivered, or nobody is left who could own the number and it is dropped.
-- The rule, and why each part must stay as it is:
--
-- 1. One statement reads, so one snapshot tells both what is above the watermark and which holes have
--    appeared. Per-key order rests on it: writers who lock the key's row before they emit get rising
--    numbers, so where a number is visible, every lower one of its key is visible in the same snapshot,
--    and the batch is handled in the order of numbers.
-- 2. What was missing becomes a hole. AFTER the read, in a later statement, the fence is noted: everyone
--    who holds RowExclusiveLock on the log. Whoever took a number takes that lock first (tidemark.emit), so
--    the owner of a missing number is in the fence or has ended. Noted before the read, the fence would
--    miss a writer who began in between, and its number would be dropped while it is still under way.
-- 3. When no member holds the lock any more, the holes are read once more in a NEW statement (the one below;
--    the fence is looked at in the statement before). A transaction becomes visible before it gives up its
--    locks, so this read sees all that committed; what it does not see was rolled back.
-- 4. Prepared transactions: see tidemark.fence_closed.
-- 5. A snapshot's xmax is "last completed + 1", not "next id": no hole is ever closed by comparing with it.
-- 6. Each statement must see anew what was committed, so only READ COMMITTED will do (tidemark.claim refuses
--    the rest).
-- 7. Numbers are taken inside emit's insert only, by an identity with CACHE 1. With read_order strict the
--    watermark stops before the first hole instead of passing it. Numbers that were open below it before, when
--    the order became strict or the worker began, come first: until they are closed, nothing above is read.
-- 8. Holes are kept as two generations: fenced, whose fence is noted and which waits to close, and holes,
--    which gather meanwhile and get their fence when fenced is empty. One fence renewed with every batch
--    would never close under steady writing. At hole_limit ranges the cursor reads no further, and says who
--    keeps them open.
-- 9. The statement that reads the events reads the routes, too. Routes read before it would miss a change that was
--    committed before one of the events was emitted, and decide that event as if the route were still as it was.
create or replace function tidemark.read_outbox(
    worker text,
    batch_limit integer,
    after tidemark.batch default null,
    shard integer default 0)
returns tidemark.batch
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- A page is one index range and one hash table (whose planner expects too much of it for the default
-- work_mem), planned once, whatever the statistics of a log that grows by the
-- second say.
set enable_seqscan = off
set enable_bitmapscan = off
set work_mem = '64MB'
set jit = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    c record;
    -- The routes with a filter; null until they are read.
    filtered tidemark.outbound_route[];
    mark bigint;
    in_order boolean;
    open int8multirange;
    -- The others, which read_order strict has noted, lie above the watermark, where the read meets them anyway.
    below int8multirange;
    closed boolean := false;
    ahead integer := batch_limit;
    b tidemark.batch;
    missing int8multirange := '{}';
    ready int8multirange; -- what strict order lets through
    -- With shards, all that was read; the groups are the events of this shard.
    seen int8multirange;
begin
    select w.read_order, w.hole_limit, w.domains, w.shards, k.watermark_id, k.decided_through, k.holes, k.fenced,
           k.fence, coalesce(k.rewound_to::text, k.decided_through) as left_at, tidemark.cursor_edited(k) as edited,
           exists (select from tidemark.outbound_route r
                   where r.worker = w.worker and (r.key_filter is not null or r.payload_filter is not null)) as filters,
           array(select d.domain from tidemark.shut_domains() d) as shut
    into c
    from tidemark.worker w
    join tidemark.worker_cursor k on k.worker = w.worker and k.source = 'outbox' and k.shard = read_outbox.shard
    where w.worker = read_outbox.worker;
    mark := c.watermark_id::bigint;
    in_order := c.read_order = 'strict';
    if c.edited then
        raise exception using errcode = 'TM012',
            message = format('worker %s: the watermark is %s, and was left at %s: it was edited by hand, or restored',
                             read_outbox.worker, mark, c.left_at),
            hint = 'Accept a place with tidemark.worker_rewind.';
    end if;
    if not (after is null) then
        -- The page before this one is being acted on: the cursor is where that page will leave it.
        mark := after.watermark;
        c.holes := after.holes;
        c.fenced := after.fenced;
        c.fence := after.fence;
    end if;
    open := c.holes + c.fenced;
    below := case when isempty(open) then open else open * int8multirange(int8range(null, mark + 1)) end;
    if in_order and not isempty(below) then
        ahead := 0;
    end if;
    b := row(mark, 0, 0, mark < c.decided_through::bigint, c.holes, c.fenced, c.fence, '{}', '{}', '{}', null,
             c.shut);

    if not isempty(c.fenced) then
        closed := tidemark.fence_closed(c.fence);
        if not closed and (select count(*) from unnest(open)) >= c.hole_limit then
            ahead := 0;
            b.blocked_by := coalesce(tidemark.fence_blame(c.fence), 'a transaction that has just ended');
        end if;
    end if;

    if isempty(below) and not c.filters and c.shards = 1 then
        -- The same without holes and filters, at half the cost: what most batches are.
        select a.groups, a.events, 0, greatest(mark, a.last), r.routes, r.filtered
        into b.groups, b.events, b.late, b.watermark, b.routes, filtered
        from (
            select array_agg(row(g.domain, g.type, g.stream, null, g.events, g.seqs)::tidemark.event_group) as groups,
                   coalesce(sum(g.events), 0) as events, max(upper(g.seqs)) - 1 as last
            from (
                select o.domain, o.type, o.stream, count(*)::integer as events,
                       range_agg(int8range(o.seq, o.seq + 1)) as seqs
                from (
                    select o.seq, o.domain, o.type, o.stream from tidemark.outbox o
                    where o.seq > mark order by o.seq limit ahead) o
                group by o.domain, o.type, o.stream) g) a
        cross join tidemark.worker_routes(read_outbox.worker) r;
    end if;
    -- A filter may have been set just now.
    if filtered is null or cardinality(filtered) > 0 then
        with now_ as materialized (
            select r.routes, r.filtered from tidemark.worker_routes(read_outbox.worker) r
        ), late as materialized (
            select o.* from unnest(below) hole (span)
            cross join lateral (
                select o.seq, o.domain, o.type, o.stream, part.ours,
                       array(select r.id from unnest((select n.filtered from now_ n)) r
                             where part.ours and tidemark.route_matches(r, o) order by r.id) as matched
                from tidemark.outbox o
                cross join lateral (
                    select c.shards = 1 or tidemark.shard_of(o.key, o.seq, c.shards) = read_outbox.shard as ours) part
                where o.seq >= lower(hole.span) and o.seq < upper(hole.span)
                order by o.seq limit batch_limit) o
            order by o.seq limit batch_limit
        ), forward as (
            select o.seq, o.domain, o.type, o.stream, part.ours,
                   array(select r.id from unnest((select n.filtered from now_ n)) r
                         where part.ours and tidemark.route_matches(r, o) order by r.id) as matched
            from tidemark.outbox o
            cross join lateral (
                select c.shards = 1 or tidemark.shard_of(o.key, o.seq, c.shards) = read_outbox.shard as ours) part
            where o.seq > mark
            -- Lower numbers first: what a full batch of late events leaves no room for is read next time.
            order by o.seq limit least(ahead, batch_limit - (select count(*) from late))
        ), grouped as materialized (
            select e.domain, e.type, e.stream, e.matched, e.ours, count(*)::integer as events,
                   range_agg(int8range(e.seq, e.seq + 1)) as seqs
            from (select * from late union all select * from forward) e
            group by e.domain, e.type, e.stream, e.matched, e.ours
        )
        select a.groups, a.events, (select count(*) from late), greatest(mark, a.last), n.routes, a.seen
        into b.groups, b.events, b.late, b.watermark, b.routes, seen
        from (
            select array_agg(
                       row(g.domain, g.type, g.stream, g.matched, g.events, g.seqs)::tidemark.event_group)
                       filter (where g.ours) as groups,
                   coalesce(sum(g.events), 0) as events, max(upper(g.seqs)) - 1 as last,
                   case when c.shards > 1 then range_agg(g.seqs) end as seen
            from grouped g) a
        cross join now_ n;
    end if;

    b.seqs := int8multirange(int8range(mark + 1, b.watermark + 1));
    -- Where nothing is missing and nothing was late, that is what was read. Putting the groups together is
    -- a sort, for when it is not.
    if b.watermark - mark > b.events - b.late or b.late > 0 then
        missing := b.seqs;
        b.seqs := coalesce(seen, (select range_agg(g.seqs) from unnest(b.groups) g), '{}');
        missing := missing - b.seqs;
    end if;

    -- A full batch of late events has looked at the holes up to its last one: those above it stay. Those below it are
    -- dropped, or strict order would wait for one that was rolled back, and read the same batch for ever.
    b.fenced := case when not closed then c.fenced - b.seqs
                     when b.late < batch_limit then '{}'
                     else c.fenced - int8multirange(int8range(null, upper(b.seqs))) end;

    if in_order then
        -- A number that has not appeared although its fence has closed was rolled back: it is not missing any more.
        missing := (missing + (below - b.seqs)) - (c.fenced - b.fenced);
        if not isempty(missing) then
            ready := int8multirange(int8range(null, lower(missing)));
            b.watermark := greatest(mark, lower(missing) - 1);
            b.groups := array(
                select row(g.domain, g.type, g.stream, g.matched,
                           (select sum(upper(r) - lower(r)) from unnest(g.seqs * ready) r),
                           g.seqs * ready)::tidemark.event_group
                from unnest(b.groups) g
                where g.seqs && ready);
            b.events := coalesce((select sum(g.events) from unnest(b.groups) g), 0);
            -- What has appeared below the watermark, behind a number that is open still, is read again.
            missing := missing + below * (b.seqs - ready);
            b.seqs := b.seqs * ready;
        end if;
        b.fenced := b.fenced * missing;
        b.holes := missing - b.fenced;
    else
        b.holes := c.holes - b.seqs + missing;
    end if;

    if isempty(b.fenced) then
        b.fenced := b.holes;
        b.holes := '{}';
        b.fence := case when isempty(b.fenced) then '{}' else tidemark.fence_now() end;
    end if;

    if c.domains is not null and exists (select from unnest(b.groups) g where g.domain <> all (c.domains)) then
        b.groups := array(select g from unnest(b.groups) g where g.domain = any (c.domains));
        select coalesce(range_agg(g.seqs), '{}') into b.seqs from unnest(b.groups) g;
    elsif c.shards > 1 then
        select coalesce(range_agg(g.seqs), '{}') into b.seqs from unnest(b.groups) g;
    end if;
    return b;
end
$$;
comment on function tidemark.read_outbox(text, integer, tidemark.batch, integer) is
    'Reads the next batch of the log after the worker''s cursor, at most batch_limit events: those that have appeared '
    'in its holes, then those above its watermark. With shards, each reads the whole log, and its groups have only its '
    'own events (tidemark.shard_of). With after, from where that batch will leave the cursor. Writes '
    'nothing; tidemark.settle moves the cursor. Raises TM012 where the watermark was edited by hand.';
grant execute on function tidemark.read_outbox(text, integer, tidemark.batch, integer) to tidemark_executor;
