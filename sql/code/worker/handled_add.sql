create or replace function tidemark.handled_add(worker text, route_id integer, seq bigint)
returns boolean
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
begin
    -- While an earlier owner of the cursor handles the event, this waits for the end of its transaction.
    insert into tidemark.handled (route_id, seq)
    select r.id, handled_add.seq from tidemark.outbound_route r
    where r.id = handled_add.route_id and r.worker = handled_add.worker and r.target_kind = 'go'
    on conflict do nothing;
    if found then
        return true;
    elsif not exists (
        select from tidemark.outbound_route r
        where r.id = handled_add.route_id and r.worker = handled_add.worker and r.target_kind = 'go') then
        raise exception using errcode = 'TM004',
            message = format('the route %s is no longer a handler of worker %s', route_id, handled_add.worker),
            hint = 'Nothing was written. The worker asks for its routes with its next page.';
    end if;
    return false;
end
$$;
comment on function tidemark.handled_add(text, integer, bigint) is
    'Records, in the transaction in which a handler of a Go program handles an event, that it has; tidemark.settle '
    'removes the record. False: it has already, and the outcome was not settled; the handler is not called again. '
    'Raises TM004 where the route is no longer one of the worker''s handlers.';
grant execute on function tidemark.handled_add(text, integer, bigint) to tidemark_executor;
