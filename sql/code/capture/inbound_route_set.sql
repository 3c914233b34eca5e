-- public
create or replace function tidemark.inbound_route_set(
    route_code text,
    changes jsonb,
    reason text default null,
    may_create boolean default true)
returns setof tidemark.inbound_route
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    route tidemark.inbound_route;
    field text;
    problem text;
    rival text;
begin
    perform set_config('tidemark.reason', coalesce(inbound_route_set.reason, ''), true);
    perform tidemark.changes_check('inbound route', inbound_route_set.changes, 'tidemark.inbound_route',
                                   array['id', 'route_code']);

    select r.* into route from tidemark.inbound_route r
    where r.route_code = inbound_route_set.route_code for no key update;
    if not found then
        if not may_create then
            raise exception using errcode = 'TM004',
                message = format('there is no inbound route "%s"', inbound_route_set.route_code),
                hint = 'Inbound routes: select route_code from tidemark.inbound_route;';
        end if;
        foreach field in array array['source_schema', 'source_table', 'sql_event', 'domain', 'type'] loop
            if changes ->> field is null then
                raise exception using errcode = 'TM005',
                    message = format('inbound route %s is new and needs %s', inbound_route_set.route_code, field),
                    hint = 'A new inbound route needs source_schema, source_table, sql_event, domain and type.';
            end if;
        end loop;
    end if;
    select r.route_code into rival from tidemark.inbound_route r
    where r.route_code <> inbound_route_set.route_code
      and (r.source_schema, r.source_table, r.sql_event, r.source_object_kind) = (
          coalesce(changes ->> 'source_schema', route.source_schema),
          coalesce(changes ->> 'source_table', route.source_table),
          coalesce(changes ->> 'sql_event', route.sql_event),
          coalesce(changes ->> 'source_object_kind', route.source_object_kind, 'table'));
    if found then
        raise exception using errcode = 'TM005',
            message = format('inbound route %s is for the same operation as %s', inbound_route_set.route_code, rival),
            hint = format('An operation of a table has one inbound route, which keeps its name: change %s, or delete '
                          'it first (tidemark capture route delete %1$s), which needs its trigger detached.', rival);
    end if;
    if route.id is null then
        insert into tidemark.inbound_route as r (route_code, source_object_kind, source_schema, source_table, sql_event,
                                                 domain, type)
        values (inbound_route_set.route_code, coalesce(changes ->> 'source_object_kind', 'table'),
                changes ->> 'source_schema', changes ->> 'source_table', changes ->> 'sql_event', changes ->> 'domain',
                changes ->> 'type')
        returning r.* into route;
    end if;

    route := jsonb_populate_record(route, changes);
    -- An operator can still switch off a route that already breaks a newer schema.
    problem := case when changes ?| array['payload_columns', 'domain', 'type', 'source_object_kind']
                         then tidemark.contract_problem(route) end;
    if problem is not null then
        raise exception using errcode = 'TM005',
            message = format('inbound route %s: %s', inbound_route_set.route_code, problem),
            hint = 'Leave them out of payload_columns, or give the type a schema that names them.';
    end if;
    return query
    update tidemark.inbound_route r
    set (source_object_kind, source_schema, source_table, sql_event, domain, type, stream, enabled, dry_run,
         fail_closed, idempotency_policy, payload_columns, description)
      = row(route.source_object_kind, route.source_schema, route.source_table, route.sql_event, route.domain,
            route.type, route.stream, route.enabled, route.dry_run, route.fail_closed, route.idempotency_policy,
            route.payload_columns, route.description)
    where r.id = route.id
    returning r.*;
    perform tidemark.capture_make(s.route_code) from tidemark.capture_stale s where s.route_code = route.route_code;
end
$$;
comment on function tidemark.inbound_route_set(text, jsonb, text, boolean) is
    'Creates an inbound route, or changes the named columns of one: tidemark.inbound_route_set(''orders-new'', '
    '''{"source_schema": "public", "source_table": "orders", "sql_event": "insert", "domain": "shop", "type": '
    '"order.placed"}''). Returns the row. With may_create false an unknown route raises TM004. Raises TM005 for an '
    'unknown column, for a contract column that the closed schema of the type does not name, and where another route '
    'is for the same operation; TM008 for enabled and live in an installation that is not.';
grant execute on function tidemark.inbound_route_set(text, jsonb, text, boolean) to tidemark_admin;
