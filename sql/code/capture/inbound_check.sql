create or replace function tidemark.inbound_check(route_id integer)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    route record;
begin
    select r.route_code, r.domain, r.type, tidemark.replaced_since_snapshot(r.xmax) as replaced into route
    from tidemark.inbound_route r where r.id = inbound_check.route_id;
    -- The route may be younger than the snapshot: triggers are those of now, whatever the snapshot.
    if not found or route.replaced then
        raise exception using errcode = 'serialization_failure',
            message = format('inbound route %s was made or changed after the snapshot of this transaction was taken',
                             coalesce(route.route_code, route_id::text)),
            hint = 'Roll back and try again: a capture follows the current route.';
    end if;
    perform tidemark.registry_check(route.domain, route.type);
end
$$;
comment on function tidemark.inbound_check(integer) is
    'Raises 40001 under REPEATABLE READ and SERIALIZABLE where the inbound route, or the rules of its event type '
    '(tidemark.registry_check), were changed after the snapshot: the capture would go by rules that an operator has '
    'taken back, or leave out an event.';
