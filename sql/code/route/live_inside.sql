create or replace function tidemark.live_inside(worker text, evidence tidemark.evidence[], shard integer default 0)
returns integer[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_sort = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
    clock constant timestamptz := clock_timestamp(); -- which an index can use as a condition
begin
    return array(
        select r.id from tidemark.outbound_route r
        where r.worker = live_inside.worker and tidemark.route_delivers(r) and tidemark.target_is_inside(r.target_kind)
          and (exists (select from unnest(evidence) e where e.route_id = r.id and e.outcome = 'pending'
                       and e.reason is distinct from 'domain_closed')
               -- In the order of the index and with a limit, so that this is looked up for each route: neither all
               -- that is due nor all that waits is read.
               or (select true from tidemark.pending p where p.route_id = r.id and not p.replay
                   and p.shard = live_inside.shard and p.next_attempt_at <= clock
                   order by p.next_attempt_at limit 1)
               or (select true from tidemark.pending p where p.route_id = r.id and p.replay
                   and p.shard = live_inside.shard and p.next_attempt_at <= clock
                   order by p.next_attempt_at limit 1))
        order by r.id);
end
$$;
comment on function tidemark.live_inside(text, tidemark.evidence[], integer) is
    'The worker''s live routes, but for paused ones, that have something to deliver inside the database: from this '
    'evidence, or left over from earlier passes.';
grant execute on function tidemark.live_inside(text, tidemark.evidence[], integer) to tidemark_executor;
