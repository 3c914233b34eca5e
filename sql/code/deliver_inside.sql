create or replace function tidemark.deliver_inside(
    worker text,
    evidence tidemark.evidence[],
    out settled tidemark.evidence[],
    out results tidemark.result[],
    out fallbacks integer)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    path constant text := tidemark.default_search_path();
    route tidemark.outbound_route;
    left_over int8multirange;
    due tidemark.evidence;
    delivered record;
begin
    settled := deliver_inside.evidence;
    results := '{}';
    fallbacks := 0;
    for route in
        select r.* from tidemark.outbound_route r
        where r.worker = deliver_inside.worker and r.enabled and not r.dry_run and tidemark.target_is_inside(r.target_kind)
        order by r.id
    loop
        -- First what a gate that closed in mid-pass has left over: the order of a key holds.
        left_over := (
            select range_agg(int8range(p.seq, p.seq + 1)) from tidemark.pending p
            where p.route_id = route.id and p.next_attempt_at <= clock_timestamp());
        if left_over is not null then
            delivered := tidemark.deliver(route, left_over, path);
            fallbacks := fallbacks + delivered.fallbacks;
            results := results || array(
                select row(e.route_id, false, e.outcome, e.reason, e.detail, e.seqs, 0)::tidemark.result
                from unnest(delivered.evidence) e);
        end if;

        select e.* into due from unnest(settled) e where e.route_id = route.id and e.outcome = 'pending';
        if found then
            delivered := tidemark.deliver(route, due.seqs, path);
            fallbacks := fallbacks + delivered.fallbacks;
            settled := delivered.evidence || array(
                select e from unnest(settled) e where not (e.route_id = route.id and e.outcome = 'pending'));
        end if;
    end loop;
end
$$;
comment on function tidemark.deliver_inside(text, tidemark.evidence[]) is 'Delivers what is pending on the worker''s routes to targets inside the database, in this transaction: settled is the evidence with what came of it, results what came of events that were left over. Raises what tidemark.deliver raises.';
revoke all on function tidemark.deliver_inside(text, tidemark.evidence[]) from public;
grant execute on function tidemark.deliver_inside(text, tidemark.evidence[]) to tidemark_executor;
