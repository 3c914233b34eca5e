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
declare
    passed constant integer[] := array(
        select r.id from unnest(decide.routes) r
        where (r.key_filter is not null or r.payload_filter is not null) and tidemark.route_matches(r, decide.event));
    alone constant tidemark.event_group[] := array[
        row((decide.event).domain, (decide.event).type, (decide.event).stream, passed, 1, null)::tidemark.event_group];
begin
    return query
    select d.route_id, d.outcome, d.reason
    from tidemark.decide_groups(decide.worker, alone, decide.routes, decide.gates) d
    order by 1;
end
$$;
comment on function tidemark.decide(text, tidemark.outbox, tidemark.outbound_route[], tidemark.gates) is
    'The worker''s decision on an event: one row for each of its routes that claims the event, or one row with '
    'route_id 0 and skipped where none does; no row while a gate is closed. pending: to be delivered, with the reason '
    'domain_closed if it waits until the gate of its domain is open. dry_run has the reason transform_untried where '
    'the route has a transform (tidemark.dry_run_transform calls it later). failed (skipped where the route does not '
    'fail closed) has a reason: unknown_target_kind, bad_retry_policy, ambiguous_route.';
grant execute on function tidemark.decide(text, tidemark.outbox, tidemark.outbound_route[], tidemark.gates)
    to tidemark_reader, tidemark_executor;
