create or replace function tidemark.beat(
    worker text,
    epoch bigint,
    lease interval,
    shard integer default 0,
    out gate text,
    out live_routes integer[],
    out closed_domains text[])
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform tidemark.lease_check(beat.worker, beat.epoch, 'outbox', beat.shard);
    -- Not tidemark.log_gate: what is under way when another instance wants the shard comes to its end.
    gate := tidemark.closed_gate(beat.worker);
    perform tidemark.executor_beat(array[tidemark.executor_id(beat.worker, 'outbox', beat.shard)],
                                   case when gate is null then 'ok' else 'closed' end, beat.lease);
    live_routes := array(
        select r.id from tidemark.outbound_route r where tidemark.route_delivers(r) order by r.id);
    closed_domains := tidemark.closed_domains();
end
$$;
comment on function tidemark.beat(text, bigint, interval, integer) is
    'Renews the lease and reports which deliveries are still allowed: gate names the gate that is closed (null: none), '
    'live_routes are the routes that are enabled, not in dry run and not paused, closed_domains the domains whose gate '
    'is closed. Raises TM011 where the lease has another epoch by now, or was given back.';
grant execute on function tidemark.beat(text, bigint, interval, integer) to tidemark_executor;
