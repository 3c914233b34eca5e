create or replace function tidemark.capture_backfill_route(name text)
returns tidemark.inbound_route
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    event text;
    route tidemark.inbound_route;
begin
    foreach event in array array['update', 'insert'] loop
        select r.* into route from tidemark.inbound_route r
        join tidemark.capture_list l on l.route_code = r.route_code and l.state = 'live'
            and l.trigger in ('attached', 'always')
        where r.source_object_kind = 'table' and r.sql_event = event
          and format('%I.%I', r.source_schema, r.source_table) = capture_backfill_route.name;
        if not found then
            raise exception using errcode = 'TM005',
                message = format('the %ss of %s are not captured: a row that changes meanwhile would be missed', event,
                                 name),
                hint = 'An inbound route that is enabled and not in dry run, and its trigger: tidemark capture list.';
        end if;
    end loop;
    return route;
end
$$;
comment on function tidemark.capture_backfill_route(text) is
    'The inbound route for inserts into a table that is backfilled. Raises TM005 where inserts or updates of it are '
    'not captured.';
grant execute on function tidemark.capture_backfill_route(text) to tidemark_admin;
