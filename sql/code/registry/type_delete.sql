-- public
create or replace function tidemark.type_delete(domain text, type text, reason text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    name constant text := format('%s/%s', type_delete.domain, type_delete.type);
    problem text;
    advice text;
begin
    perform from tidemark.event_type t
    where t.domain = type_delete.domain and t.type = type_delete.type for update;
    if not found then
        raise exception using errcode = 'TM004', message = format('there is no event type %s', name),
            hint = 'Types: select domain, type from tidemark.event_type;';
    end if;
    select p.problem, p.advice into problem, advice from (
        select 'Tidemark emits it', 'Switch it off instead: tidemark type set --enabled=false.'
        where type_delete.domain in ('system', 'commands')
        union all
        select format('route %s is for it', r.route_code), 'Delete the route first, or give it another type.'
        from tidemark.outbound_route r
        where r.domain = type_delete.domain and r.type = type_delete.type
        union all
        select format('inbound route %s makes it', r.route_code), 'Delete the inbound route first.'
        from tidemark.inbound_route r where r.domain = type_delete.domain and r.type = type_delete.type
        union all
        select format('worker %s emits it', w.worker), 'Delete the worker first, or give it another handler_ref.'
        from tidemark.worker w where w.handler = 'emit' and w.handler_ref = name) p (problem, advice)
    limit 1;
    perform tidemark.deletion('type', name, type_delete.reason, problem, advice);
    delete from tidemark.event_type t where t.domain = type_delete.domain and t.type = type_delete.type;
end
$$;
comment on function tidemark.type_delete(text, text, text) is
    'Deletes an event type that no route, inbound route or worker names. Events of the type stay in the log, and are '
    'delivered; tidemark.emit stores no more. Raises TM004, TM005 (no reason, or it is in use).';
grant execute on function tidemark.type_delete(text, text, text) to tidemark_admin;
