-- public
create or replace function tidemark.route_set(
    route_code text,
    changes jsonb,
    reason text default null,
    may_create boolean default true)
returns setof tidemark.outbound_route
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    route tidemark.outbound_route;
    was tidemark.outbound_route;
    field text;
    problem text;
begin
    perform set_config('tidemark.reason', coalesce(route_set.reason, ''), true);
    perform tidemark.changes_check('route', route_set.changes, 'tidemark.outbound_route',
                                   array['id', 'route_code', 'paused_at']);
    if changes ? 'worker' and not exists (
        select from tidemark.worker w where w.worker = route_set.changes ->> 'worker')
    then
        raise exception using errcode = 'TM004', message = format('there is no worker "%s"', changes ->> 'worker'),
            hint = 'Workers: select worker from tidemark.worker;';
    end if;

    select r.* into route from tidemark.outbound_route r where r.route_code = route_set.route_code for no key update;
    if not found then
        if not may_create then
            raise exception using errcode = 'TM004', message = format('there is no route "%s"', route_set.route_code),
                hint = 'Routes: select route_code from tidemark.outbound_route;';
        end if;
        foreach field in array array['domain', 'target_kind', 'target_ref'] loop
            if changes ->> field is null then
                raise exception using errcode = 'TM005',
                    message = format('route %s is new and needs %s', route_set.route_code, field),
                    hint = 'A new route needs domain, target_kind and target_ref.';
            end if;
        end loop;
        insert into tidemark.outbound_route as r (route_code, worker, domain, target_kind, target_ref, options)
        values (route_set.route_code, coalesce(changes ->> 'worker', 'default'), changes ->> 'domain',
                changes ->> 'target_kind', changes ->> 'target_ref', coalesce(changes -> 'options', '{}'))
        returning r.* into route;
    else
        was := route;
    end if;

    route := jsonb_populate_record(route, changes);
    -- By a plain update it can still get here; then its events fail and are kept (tidemark.decide).
    if not tidemark.retry_policy_ok(route.retry_policy) then
        raise exception using errcode = 'TM005',
            message = format('route %s: retry_policy %s cannot be read', route.route_code, route.retry_policy),
            hint = 'An object with any of max_attempts (1 to 100), base_seconds, max_seconds, jitter (0 to 1); or '
                'null.';
    end if;
    -- A function can be dropped or created later: then the events fail and are kept (tidemark.delivery_statement).
    if route.target_kind = 'sql' and ((route.target_kind, route.target_ref) is distinct from
            (was.target_kind, was.target_ref)
        or route.enabled and not was.enabled or not route.dry_run and was.dry_run)
        and (tidemark.target_problem(route.target_kind, route.target_ref, route.options)).problem is null then
        -- The function may be created later. Until then deliveries fail, and tidemark.verify tells it.
        problem := (select t.problem from tidemark.sql_target(route.target_ref) t where t.function is not null);
        if problem is not null then
            raise exception using errcode = 'TM005', message = format('route %s: %s', route.route_code, problem),
                hint = 'target_ref is schema.function, taking one jsonb or one tidemark.outbox[].';
        end if;
    end if;
    return query
    update tidemark.outbound_route r
    set (worker, domain, type, stream, key_filter, payload_filter, target_kind, target_ref, exclusive, enabled, dry_run,
         fail_closed, ordering, retry_policy, timeout, concurrency, options, transform, columns, description)
      = row(route.worker, route.domain, route.type, route.stream, route.key_filter, route.payload_filter,
            route.target_kind, route.target_ref, route.exclusive, route.enabled, route.dry_run, route.fail_closed,
            route.ordering, route.retry_policy, route.timeout, route.concurrency, route.options, route.transform,
            route.columns, route.description)
    where r.id = route.id
    returning r.*;
end
$$;
comment on function tidemark.route_set(text, jsonb, text, boolean) is
    'Creates a route, or changes the named columns of one: tidemark.route_set(''orders'', ''{"domain": "shop", '
    '"type": "order.*", "target_kind": "sql", "target_ref": "app.on_order"}''). Returns the row. With may_create '
    'false an unknown route raises TM004. Raises TM005 for an unknown column, an unreadable retry policy, a kind, a '
    'reference or options that tidemark.target_rules does not know, an SQL target with two functions '
    '(tidemark.sql_target), or a transform that is not there (tidemark.transform_problem), and for a route '
    'that cannot move to another worker without loss (tidemark.route_worker_check); TM008 for a route that would be '
    'enabled and live in an installation that is not live.';
grant execute on function tidemark.route_set(text, jsonb, text, boolean) to tidemark_admin;
