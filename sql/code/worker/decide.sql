-- The decision contract. This function is the authority; sql/test/internal/oracle/decide.go mirrors it, and a property
-- test compares the two. It is pure: it depends only on its arguments.
create or replace function tidemark.decide(
    worker text,
    event tidemark.outbox,
    routes tidemark.outbound_route[],
    gates tidemark.gates)
returns table (route_id integer, outcome tidemark.outcome, reason text)
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return query
    with claim as materialized (
        select r.* from unnest(decide.routes) r where tidemark.route_matches(r, decide.event)
    ), refused as (
        select c.*,
            case
                when not c.enabled then null
                when not tidemark.target_is_known(c.target_kind)
                    then 'unknown_target_kind'
                when not tidemark.retry_policy_ok(c.retry_policy) then 'bad_retry_policy'
                -- A route in dry run never blocks a live one, but its outcome shows the conflict that going live would
                -- cause.
                when exists (
                    select from claim o
                    where o.id <> c.id and o.enabled and (c.dry_run or not o.dry_run)
                      and o.target_kind = c.target_kind and o.target_ref = c.target_ref
                      and (o.exclusive or c.exclusive))
                    then 'ambiguous_route'
            end as refusal
        from claim c where c.worker = decide.worker
    ), decided as (
        select r.id,
            case
                when not r.enabled then 'disabled'
                when r.refusal is not null then case when r.fail_closed then 'failed' else 'skipped' end
                when r.dry_run then 'dry_run'
                else 'pending'
            end::tidemark.outcome,
            case when r.refusal is null and r.enabled and not r.dry_run
                      and (decide.event).domain = any ((decide.gates).closed) then 'domain_closed' else r.refusal end
        from refused r
        union all
        select 0, 'skipped', 'no_route' where not exists (select from refused)
    )
    select d.* from decided d
    where (decide.gates).master and (decide.gates).worker
      and ((decide.gates).armed
           or not exists (select from unnest(decide.routes) r
                          where r.worker = decide.worker and r.enabled and not r.dry_run))
    order by 1;
end
$$;
comment on function tidemark.decide(text, tidemark.outbox, tidemark.outbound_route[], tidemark.gates) is
    'The worker''s decision on an event: one row for each of its routes that claims the event, or one row with '
    'route_id 0 and skipped where none does; no row while a gate is closed. pending: to be delivered, with the reason '
    'domain_closed if it waits until the gate of its domain is open. failed (skipped where the route does not fail '
    'closed) has a reason: unknown_target_kind, bad_retry_policy, ambiguous_route.';
grant execute on function tidemark.decide(text, tidemark.outbox, tidemark.outbound_route[], tidemark.gates)
    to tidemark_reader, tidemark_executor;
