create or replace function tidemark.decide_batch(worker text, batch tidemark.batch)
returns tidemark.evidence[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_nestloop = off
set jit = off
as $$
#variable_conflict use_column
declare
    -- As variables, they are found at once.
    groups constant tidemark.event_group[] := batch.groups;
    routes constant tidemark.outbound_route[] := batch.routes;
    evidence tidemark.evidence[];
    worker_id integer;
    dealt bigint;
    span record;
    passed int8multirange := '{}';
begin
    if batch.events = 0 then
        return '{}';
    end if;
    -- The gates were open at the claim, in this transaction.
    if cardinality(groups) * cardinality(routes) <= 400 and not exists (
        select from unnest(routes) r where r.exclusive or r.worker <> decide_batch.worker)
    then
        evidence := array(
            select row(p.route_id, p.outcome, p.reason, null, p.events, case cardinality(p.members)
                when 1 then (groups[p.members[1]]).seqs
                when cardinality(groups) then batch.seqs
                else tidemark.group_numbers(groups, batch.seqs, p.members) end)::tidemark.evidence
            from (
                select d.route_id, d.outcome, d.reason, sum((groups[d.n]).events)::integer as events,
                       array_agg(d.n) as members
                from tidemark.decide_few(groups, routes, batch.closed) d
                group by d.route_id, d.outcome, d.reason) p);
    else
        evidence := array(
            select row(p.route_id, p.outcome, p.reason, null, p.events, case cardinality(p.members)
                when 1 then (groups[p.members[1]]).seqs
                when cardinality(groups) then batch.seqs
                else tidemark.group_numbers(groups, batch.seqs, p.members) end)::tidemark.evidence
            from (
                select d.route_id, d.outcome, d.reason, sum((groups[d.n]).events)::integer as events,
                       array_agg(d.n) as members
                from tidemark.decide_groups(decide_batch.worker, groups, routes,
                                            row(true, true, true, batch.closed)::tidemark.gates) d
                group by d.route_id, d.outcome, d.reason) p);
    end if;

    if batch.rewound then
        worker_id := (select w.id from tidemark.worker w where w.worker = decide_batch.worker);
        -- When the number of shards was changed, all went back to the lowest place. Below the highest, what another
        -- shard had passed has evidence, and is not decided for routes that are newer (tidemark.worker_shards).
        dealt := (select max(c.dealt_through) from tidemark.worker_cursor c
                  where c.worker = decide_batch.worker and c.source = 'outbox');
        select min(lower(e.seqs)) as low, max(upper(e.seqs)) as high into span from unnest(evidence) e;
        if span.low <= dealt then
            passed := tidemark.decided(worker_id, 0, span.low, least(span.high, dealt))
                * int8multirange(int8range(null, dealt + 1));
        end if;
        evidence := array(
            select row(e.route_id, e.outcome, e.reason, null,
                       (select sum(upper(r) - lower(r)) from unnest(e.seqs) r), e.seqs)::tidemark.evidence
            from (
                select e.route_id, e.outcome, e.reason,
                       e.seqs - tidemark.decided(worker_id, e.route_id, lower(e.seqs), upper(e.seqs)) - passed as seqs
                from unnest(evidence) e) e
            where not isempty(e.seqs));
    end if;

    return evidence;
end
$$;
comment on function tidemark.decide_batch(text, tidemark.batch) is
    'tidemark.decide for a whole batch: one element per route, outcome and reason, with the numbers of its events. '
    'After a rewind it leaves out events that are already decided.';
grant execute on function tidemark.decide_batch(text, tidemark.batch) to tidemark_executor;
