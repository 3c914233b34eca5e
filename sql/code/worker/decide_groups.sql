-- The decision contract. This function is the authority; sql/test/internal/oracle/decide.go mirrors it, and a property
-- test compares the two. It is pure: it depends only on its arguments. Its callers inline it, so it has no search_path.
create or replace function tidemark.decide_groups(
    worker text,
    groups tidemark.event_group[],
    routes tidemark.outbound_route[],
    gates tidemark.gates)
returns table (n bigint, route_id integer, outcome tidemark.outcome, reason text)
language sql immutable parallel safe
as $$
    with g as materialized (
        select g.ordinality as n, g.domain, g.type, g.stream, g.matched
        from pg_catalog.unnest(decide_groups.groups) with ordinality g
    ), r as materialized (
        select r.id, r.worker, r.domain, r.type, r.stream, r.target_kind, r.target_ref, r.exclusive, r.enabled,
               r.dry_run, r.fail_closed, r.key_filter is not null or r.payload_filter is not null as filtered,
               r.transform is not null as transforms,
               tidemark.route_fault(r.target_kind, r.retry_policy) as fault
        from pg_catalog.unnest(decide_groups.routes) r
    ), claim as materialized (
        -- A hash join for the routes of one domain and type: of a long list, a group meets only its own. The others
        -- meet every group.
        select g.n, g.domain as in_domain, r.* from r join g on g.domain = r.domain and g.type = r.type
        where tidemark.route_fits(r.domain, r.type, r.stream, g.domain, g.type, g.stream)
          and (not r.filtered or r.id = any (g.matched))
          and r.domain <> '*' and pg_catalog.right(r.type, 1) <> '*'
        union all
        select g.n, g.domain, r.* from r join g
            on tidemark.route_fits(r.domain, r.type, r.stream, g.domain, g.type, g.stream)
           and (not r.filtered or r.id = any (g.matched))
        where r.domain = '*' or pg_catalog.right(r.type, 1) = '*'
    ), rivals as materialized (
        select a.n, a.id, a.dry_run, b.id as other_id, b.dry_run as other_dry_run
        from claim a
        join claim b on b.n = a.n and b.target_kind = a.target_kind and b.target_ref = a.target_ref and b.id <> a.id
        where a.exclusive and a.enabled and b.enabled
    ), ambiguous as (
        -- A route in dry run never blocks a live one, but its outcome shows the conflict that going live would cause.
        select x.n, x.id from rivals x where x.dry_run or not x.other_dry_run
        union all
        select x.n, x.other_id from rivals x where x.other_dry_run or not x.dry_run
    ), refused as materialized (
        select c.*,
               case
                   when not c.enabled then null
                   when c.fault is not null then c.fault
                   when (c.n, c.id) in (select a.n, a.id from ambiguous a) then 'ambiguous_route'
               end as refusal
        from claim c where c.worker = decide_groups.worker
    ), decided as (
        select x.n, x.id,
               tidemark.route_outcome(x.enabled, x.dry_run, x.fail_closed, x.refusal),
               case when x.refusal is null and x.enabled and not x.dry_run
                         and x.in_domain = any ((decide_groups.gates).closed) then 'domain_closed'
                    when x.refusal is null and x.enabled and x.dry_run and x.transforms then 'transform_untried'
                    else x.refusal end
        from refused x
        union all
        select g.n, 0, 'skipped', 'no_route' from g where g.n not in (select x.n from refused x)
    )
    select d.* from decided d
    where (decide_groups.gates).master and (decide_groups.gates).worker
      and ((decide_groups.gates).armed
           or not exists (select from r where r.worker = decide_groups.worker and r.enabled and not r.dry_run))
$$;
comment on function tidemark.decide_groups(text, tidemark.event_group[], tidemark.outbound_route[], tidemark.gates) is
    'The worker''s decision on groups of events, which have the same domain, type and stream and have passed the same '
    'filters (matched): for each group (n, its place in groups) what tidemark.decide tells of an event.';
grant execute on function tidemark.decide_groups(text, tidemark.event_group[], tidemark.outbound_route[],
                                                 tidemark.gates) to tidemark_reader, tidemark_executor;
