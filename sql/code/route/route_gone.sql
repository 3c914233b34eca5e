create or replace function tidemark.route_gone(worker text, epoch bigint, route_id integer, detail text,
    shard integer default 0)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    code text;
begin
    -- Before the lease, as a move of the route to another worker does (tidemark.route_set, route_worker_check).
    perform from tidemark.outbound_route r where r.id = route_gone.route_id for no key update;
    perform tidemark.lease_check(route_gone.worker, route_gone.epoch, 'outbox', route_gone.shard);
    perform set_config('tidemark.reason', 'the target is gone', true);
    update tidemark.outbound_route r set enabled = false
    where r.id = route_gone.route_id and r.worker = route_gone.worker and r.enabled
    returning r.route_code into code;
    if found then
        perform tidemark.finding_open('route_gone', code, 'high',
            'the target answered that it is gone for good; the route was switched off', route_gone.detail);
    end if;
end
$$;
comment on function tidemark.route_gone(text, bigint, integer, text, integer) is
    'Switches off a route whose target answered that it is gone for good (HTTP 410), and opens the finding '
    'route_gone. Its pending deliveries stay. Raises TM011.';
grant execute on function tidemark.route_gone(text, bigint, integer, text, integer) to tidemark_executor;
