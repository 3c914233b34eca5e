-- public
create or replace function tidemark.inbound_route_delete(route_code text, reason text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    route tidemark.inbound_route;
    table_ text;
    problem text;
    advice text;
begin
    select r.* into route from tidemark.inbound_route r
    where r.route_code = inbound_route_delete.route_code for update;
    if not found then
        raise exception using errcode = 'TM004',
            message = format('there is no inbound route "%s"', inbound_route_delete.route_code),
            hint = 'Inbound routes: select route_code from tidemark.inbound_route;';
    end if;
    table_ := format('%I.%I', route.source_schema, route.source_table);
    select p.problem, p.advice into problem, advice from (
        select format('%s has its trigger', table_), format('As its owner: tidemark capture detach %s', table_)
        from tidemark.capture_attached a where a.function_name = 'capture_' || route.id
        union all
        select 'it is enabled', format('Switch it off: tidemark capture route set %s --enabled=false', route.route_code)
        where route.enabled and route.source_object_kind <> 'table'
        union all
        select format('%s has an open gap', table_), 'Emit or accept it: tidemark capture reconcile'
        from tidemark.capture_gap g
        where g.name = table_ and g.resolved_at is null and route.source_object_kind = 'table'
        union all
        select format('source %s reads %s by it', s.source, table_), 'Give the source another safety, or delete it.'
        from tidemark.source s
        where s.safety = 'capture' and (s.schema_name, s.table_name) = (route.source_schema, route.source_table)
          and route.source_object_kind = 'table') p (problem, advice)
    limit 1;
    perform tidemark.deletion('inbound route', route.route_code, inbound_route_delete.reason, problem, advice);
    delete from tidemark.inbound_route r where r.id = route.id;
end
$$;
comment on function tidemark.inbound_route_delete(text, text) is
    'Deletes an inbound route whose table has no trigger for it. Events that it made stay. Raises TM004, TM005 (no '
    'reason; or its trigger is attached, it is enabled for a function of yours, its table has an open gap, or a source '
    'is read by it).';
grant execute on function tidemark.inbound_route_delete(text, text) to tidemark_admin;
