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
    worker_id constant integer := (select w.id from tidemark.worker w where w.worker = decide_batch.worker);
    -- Asking every route of a long list about every group would cost their product. A route matters only for the groups
    -- that it can match: a route of an exact domain and type only for the groups of that domain and type.
    possible constant tidemark.outbound_route[] :=
        case when cardinality(batch.routes) <= 16 then batch.routes else array(
        select r from unnest(batch.routes) r
        where r.domain = '*' or right(r.type, 1) = '*'
          or (r.domain, r.type) in (select g.domain, g.type from unnest(batch.groups) g)) end;
    filtered constant boolean := exists (
        select from unnest(possible) r where r.key_filter is not null or r.payload_filter is not null);
    many constant boolean := cardinality(possible) > 16 and cardinality(batch.groups) > 4;
    patterns constant tidemark.outbound_route[] := case when many then array(
        select r from unnest(possible) r where r.domain = '*' or right(r.type, 1) = '*') end;
    evidence tidemark.evidence[];
begin
    -- The gates were open at the claim, in this transaction. One decision serves a whole group, since its events are
    -- equal in all columns that a route looks at; the filters were evaluated when the batch was read.
    select array_agg(row(d.route_id, d.outcome, d.reason, null, d.events,
                         tidemark.group_numbers(batch, d.members))::tidemark.evidence) into evidence
    from (
        select d.route_id, d.outcome, d.reason, sum(g.events)::integer as events, array_agg(g.n::integer) as members
        from unnest(batch.groups) with ordinality g (domain, type, stream, matched, events, seqs, n)
        left join (
            select r.domain, r.type, array_agg(r) as routes from unnest(possible) r
            where many and r.domain <> '*' and right(r.type, 1) <> '*'
            group by r.domain, r.type) e on e.domain = g.domain and e.type = g.type
        cross join lateral (select case when many then patterns || coalesce(e.routes, '{}')
                                        else possible end as routes) c
        cross join lateral (
            select case when not filtered then c.routes else array(
                select jsonb_populate_record(r, '{"key_filter": null, "payload_filter": null}')
                from unnest(c.routes) r
                where r.key_filter is null and r.payload_filter is null or r.id = any (g.matched)) end as routes) a
        cross join lateral tidemark.decide(
            decide_batch.worker,
            (null, null, null, null, null, null, g.domain, g.type, g.stream, null, null, null, null, null, null,
             null, null)::tidemark.outbox,
            a.routes, row(true, true, true, batch.closed)::tidemark.gates) d
        group by d.route_id, d.outcome, d.reason) d;

    if batch.rewound then
        select array_agg(row(e.route_id, e.outcome, e.reason, null,
                             (select sum(upper(r) - lower(r)) from unnest(e.seqs) r), e.seqs)::tidemark.evidence)
        into evidence
        from (
            select e.route_id, e.outcome, e.reason,
                   e.seqs - tidemark.decided(worker_id, e.route_id, lower(e.seqs), upper(e.seqs)) as seqs
            from unnest(evidence) e) e
        where not isempty(e.seqs);
    end if;

    return coalesce(evidence, '{}');
end
$$;
comment on function tidemark.decide_batch(text, tidemark.batch) is
    'tidemark.decide for a whole batch: one element per route, outcome and reason, with the numbers of its events. '
    'After a rewind it leaves out events that are already decided.';
grant execute on function tidemark.decide_batch(text, tidemark.batch) to tidemark_executor;
