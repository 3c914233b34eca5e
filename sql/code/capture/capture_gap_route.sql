create or replace function tidemark.capture_gap_route(name text)
returns tidemark.inbound_route
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    route tidemark.inbound_route;
begin
    select r.* into route from tidemark.inbound_route r
    where r.source_object_kind = 'table' and format('%I.%I', r.source_schema, r.source_table) = capture_gap_route.name
      and r.sql_event in ('insert', 'update') and r.enabled and not r.dry_run
    order by r.sql_event limit 1;
    if not found then
        raise exception using errcode = 'TM005',
            message = format('%s has no enabled inbound route for inserts or updates that is not in dry run', name),
            hint = 'Rows are emitted as one of these. A change whose row is gone can only be accepted.';
    elsif not exists (select from tidemark.capture_attached a
                      where a.schema_name = route.source_schema and a.table_name = route.source_table
                      and a.operation = route.sql_event and a.as_attached and a.enabled in ('O', 'A')) then
        raise exception using errcode = 'TM005',
            message = format('%s is not captured for %s at the moment: rows would be missed while others are emitted',
                             name, route.sql_event),
            hint = format('As its owner: tidemark capture attach %s --reason …', name);
    end if;
    return route;
end
$$;
comment on function tidemark.capture_gap_route(text) is
    'The inbound route by which the rows of a table''s gap are emitted: the one for inserts, else the one for updates. '
    'Raises TM005 where neither exists, or its trigger does not fire.';
grant execute on function tidemark.capture_gap_route(text) to tidemark_admin;
