create or replace function tidemark.delivery_statement(route tidemark.outbound_route, snapshot boolean)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    -- tidemark.events returns the events in order.
    source constant text := case when snapshot then 'select $2'
        when route.transform is not null or route.columns is not null
            then 'select tidemark.event_json(o) from pg_catalog.unnest($3) o'
        else 'select tidemark.event_json(o) from tidemark.events($1) o' end;
    target record;
    schema constant text := coalesce(route.options ->> 'schema', 'public');
    problem text;
    call text;
begin
    case route.target_kind
    when 'sql' then
        target := tidemark.sql_target(route.target_ref);
        if target.function is null then
            raise exception using errcode = 'undefined_function',
                message = format('route %s: %s', route.route_code, target.problem),
                hint = 'target_ref is schema.function, taking one jsonb or one tidemark.outbox[].';
        end if;
        select format('%I.%I', n.nspname, p.proname) into call
        from pg_proc p join pg_namespace n on n.oid = p.pronamespace where p.oid = target.function;
        if target.takes = 'batch' then
            return format('select %s(%s)', call, case when snapshot
                then 'array[pg_catalog.jsonb_populate_record(null::tidemark.outbox, $2)]'
                when source like '%$3%' then '$3' else 'tidemark.wave($1)' end);
        end if;
        call := call || '(e.event)';
    when 'notify' then
        -- Ids only: a notification wakes its listener, who reads what happened.
        call := format('pg_catalog.pg_notify(%L, pg_catalog.json_build_object(''event_id'', e.event -> ''event_id'', '
                       || '''domain'', e.event -> ''domain'', ''type'', e.event -> ''type'', ''route'', %L)::text)',
                       route.target_ref, route.route_code);
    when 'river' then
        problem := (tidemark.target_problem(route.target_kind, route.target_ref, route.options)).problem;
        if problem is not null then
            raise exception using errcode = 'invalid_parameter_value',
                message = format('route %s: %s', route.route_code, problem);
        end if;
        if tidemark.river_table(route.options) is null then
            raise exception using errcode = 'undefined_table',
                message = format('route %s: there is no table %I.river_job', route.route_code, schema),
                hint = 'Migrate River''s schema, or name the one that has it: option "schema".';
        end if;
        -- All else that River's client would write is the default of its column, in every version of the table: the
        -- jobs may run at once. tidemark.river_wake tells River's clients, once for all of them.
        return format('insert into %I.river_job (kind, args, queue, priority, max_attempts, metadata) '
                      || 'select %L, e.event, %L, %s, %s, %L from (%s) e (event)',
                      schema, route.target_ref, coalesce(route.options ->> 'queue', 'default'),
                      coalesce(route.options -> 'priority', '1')::integer,
                      coalesce(route.options -> 'max_attempts', '25')::integer,
                      jsonb_build_object('tidemark_route', route.route_code), source);
    else
        raise exception using errcode = 'feature_not_supported',
            message = format('route %s: delivery to %s is not built into this function', route.route_code,
                             route.target_kind);
    end case;
    return format('select %s from (%s) e (event)', call, source);
end
$$;
comment on function tidemark.delivery_statement(tidemark.outbound_route, boolean) is
    'The statement that delivers events to the route''s target inside the database: those of the numbers $1, in rising '
    'order, or the events $3 where the route has a transform or columns; with snapshot the one of the snapshot $2. '
    'Raises undefined_function where an SQL target does not exist, '
    'undefined_table where River''s does not, invalid_parameter_value for options that river does not take, '
    'feature_not_supported for any other kind.';
grant execute on function tidemark.delivery_statement(tidemark.outbound_route, boolean) to tidemark_executor;
