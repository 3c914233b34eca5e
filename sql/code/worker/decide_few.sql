-- The same rule at a third of the cost, for what most passes have: neither a hash join nor a look for rivals. To start
-- the plan of tidemark.decide_groups costs a small pass more than all that it decides. TestBatchAgreesWithDecide
-- compares both with tidemark.decide. Inlined by its caller, so it has no search_path.
create or replace function tidemark.decide_few(
    groups tidemark.event_group[],
    routes tidemark.outbound_route[],
    closed text[])
returns table (n bigint, route_id integer, outcome tidemark.outcome, reason text)
language sql immutable parallel safe
as $$
    with r as materialized (
        select r.id, r.domain, r.type, r.stream, r.key_filter is not null or r.payload_filter is not null as filtered,
               r.enabled, r.dry_run, r.fail_closed, r.transform is not null as transforms,
               case when r.enabled then tidemark.route_fault(r.target_kind, r.retry_policy) end as refusal
        from pg_catalog.unnest(decide_few.routes) r
    )
    select g.ordinality, coalesce(r.id, 0),
           case when r.id is null then 'skipped'::tidemark.outcome
                else tidemark.route_outcome(r.enabled, r.dry_run, r.fail_closed, r.refusal) end,
           case when r.id is null then 'no_route'
                when r.refusal is null and r.enabled and not r.dry_run and g.domain = any (decide_few.closed)
                    then 'domain_closed'
                when r.transforms and r.refusal is null and r.enabled and r.dry_run then 'transform_untried'
                else r.refusal end
    from pg_catalog.unnest(decide_few.groups) with ordinality g
    left join r on tidemark.route_fits(r.domain, r.type, r.stream, g.domain, g.type, g.stream)
               and (not r.filtered or r.id = any (g.matched))
$$;
comment on function tidemark.decide_few(tidemark.event_group[], tidemark.outbound_route[], text[]) is
    'tidemark.decide_groups with its gates open, for few groups and routes: all of the routes are its worker''s, and '
    'none is exclusive. closed are the domains whose gate is closed.';
grant execute on function tidemark.decide_few(tidemark.event_group[], tidemark.outbound_route[], text[])
    to tidemark_executor;
