create or replace function tidemark.deliver_inside(
    worker text,
    evidence tidemark.evidence[],
    share interval,
    closed text[],
    shard integer,
    out settled tidemark.evidence[],
    out results tidemark.result[],
    out fallbacks integer)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    path constant text := tidemark.default_search_path();
    -- Half of what is left, so that what begins at the end has time.
    latest constant timestamptz := clock_timestamp() + tidemark.time_left() / 2;
    until timestamptz := least(clock_timestamp() + share, latest);
    began timestamptz;
    -- What may hang comes last: then nothing can be tried any more.
    live constant integer[] := array(
        select l from unnest(tidemark.live_inside(deliver_inside.worker, deliver_inside.evidence,
                                                   deliver_inside.shard)) l
        order by exists (select from tidemark.pending p where p.route_id = l and p.suspects is not null), l);
    route tidemark.outbound_route;
    left_over record;
    pieces tidemark.evidence[];
    fresh int8multirange;
    shut int8multirange;
    behind int8multirange;
    delivered record;
    small boolean;
begin
    settled := deliver_inside.evidence;
    results := '{}';
    fallbacks := 0;
    -- Asked once, of all events between the first and the last: most often they fit. A late event may be far from the
    -- others.
    select tidemark.last_within(case when s.behind - s.first <= 4 * s.events
                                     then int8multirange(int8range(s.first, s.behind))
                                     else (select range_agg(e.seqs) from unnest(settled) e
                                           where e.outcome = 'pending' and e.route_id = any (live)) end,
                                tidemark.page_bytes()) is null
    into small
    from (select min(lower(e.seqs)) as first, max(upper(e.seqs)) as behind, sum(e.events) as events
          from unnest(settled) e where e.outcome = 'pending' and e.route_id = any (live)) s;
    for i in 1 .. cardinality(live) loop
        select r.* into route from tidemark.outbound_route r where r.id = live[i];
        began := clock_timestamp();
        -- First what earlier passes have left over: the order of a key holds.
        left_over := tidemark.left_over(route, shard);
        if left_over.gone then
            -- The delivery statement would find no event, and the numbers would be on record as sent.
            perform tidemark.settle_missing(deliver_inside.worker, shard);
            left_over := tidemark.left_over(route, shard);
        end if;
        pieces := array(
            select e from unnest(settled) e
            where e.route_id = route.id and e.outcome = 'pending' and e.reason is distinct from 'domain_closed');
        -- To put many numbers together is a sort. As a rule there is one piece.
        fresh := case when cardinality(pieces) = 1 then (pieces[1]).seqs
                      else coalesce((select range_agg(e.seqs) from unnest(pieces) e), '{}') end;
        settled := array(
            select e from unnest(settled) e
            where e.route_id <> route.id or e.outcome <> 'pending' or e.reason is not distinct from 'domain_closed');
        behind := case when left_over.more then fresh
            when route.ordering <> 'key' then '{}'
            else tidemark.behind_key(route, tidemark.multirange_numbers(fresh), left_over.numbers) end;
        shut := coalesce((
            select range_agg(e.seqs) from unnest(settled) e
            where e.route_id = route.id and e.outcome = 'pending' and route.ordering = 'key'), '{}');
        if not isempty(shut) then
            -- Those of this batch that wait for their domain are pending only once it is settled.
            behind := behind + coalesce((
                select range_agg(int8range(o.seq, o.seq + 1))
                from (select s.key, min(s.seq) as seq from tidemark.events(tidemark.multirange_numbers(shut)) s
                      group by s.key) first
                join tidemark.events(tidemark.multirange_numbers(fresh)) o on o.key = first.key
                    and o.seq > first.seq), '{}');
        end if;
        if not isempty(behind) then
            results := results || row(route.id, true, 'pending',
                case when left_over.more then 'busy' else 'behind_key' end, null, behind,
                case when left_over.more then 0 end)::tidemark.result;
        end if;

        if not isempty(left_over.behind) then
            -- As long as they are due, the next pass would meet them in place of others.
            results := results || row(route.id, false, 'pending', 'behind_key', null, left_over.behind,
                                      null)::tidemark.result;
        end if;

        -- The share is for deliveries.
        until := least(until + (clock_timestamp() - began), latest);
        delivered := tidemark.deliver(route, left_over.numbers, left_over.suspects, left_over.errors,
            fresh - behind, small, path, closed,
            clock_timestamp() + (until - clock_timestamp()) / (cardinality(live) - i + 1));
        fallbacks := fallbacks + delivered.fallbacks;
        if cardinality(pieces) = 1 and delivered.results
            = array[row(route.id, true, 'sent', null, null, (pieces[1]).seqs, 0)::tidemark.result]
        then
            -- This and nothing else: the settle need not count them.
            settled := settled || row(route.id, 'sent', null, null, (pieces[1]).events, fresh)::tidemark.evidence;
        else
            results := results || delivered.results;
        end if;
    end loop;
end
$$;
comment on function tidemark.deliver_inside(text, tidemark.evidence[], interval, text[], integer) is
    'Delivers what is pending on the worker''s routes to targets inside the database, in this transaction; begins '
    'nothing more when share is over, which the routes have in equal parts. Nothing of the domains closed is '
    'delivered. settled is the evidence without what was, results what came of it and of events that were left over. '
    'Raises what tidemark.deliver raises.';
grant execute on function tidemark.deliver_inside(text, tidemark.evidence[], interval, text[], integer)
    to tidemark_executor;
