-- public
-- The counterpart of capture_attach for functions and triggers of the application.
create or replace function tidemark.inbound_emit(
    route_code text,
    payload jsonb default '{}',
    key text default null,
    subject_ref text default null,
    idempotency_key text default null)
returns uuid
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set quote_all_identifiers = off
as $$
#variable_conflict use_variable
declare
    route record;
    subject text;
    id uuid;
    outcome text;
    why text := '';
begin
    select r.*, t.type is not null as registered into route
    from tidemark.inbound_route r
    left join tidemark.event_type t on t.domain = r.domain and t.type = r.type and t.enabled
    where r.route_code = inbound_emit.route_code;
    if found and current_setting('transaction_isolation') not like 'read %' then
        perform tidemark.inbound_check(route.id);
    end if;
    if route.id is null or route.source_object_kind <> 'table' and not route.enabled then
        return null;
    elsif route.source_object_kind = 'table' then
        raise exception using errcode = 'TM005',
            message = format('inbound route %s is for a table: its trigger makes the events', inbound_emit.route_code),
            hint = 'Set source_object_kind to function or trigger, or attach the table: tidemark capture attach.';
    elsif jsonb_typeof(payload) is distinct from 'object' then
        raise exception using errcode = 'TM002',
            message = format('inbound route %s: payload is %s, not an object', inbound_emit.route_code,
                             coalesce(jsonb_typeof(payload), 'null'));
    elsif route.dry_run then
        outcome := 'dry_run';
    elsif not route.registered then
        outcome := 'unregistered';
        why := format('%s/%s is not registered or not enabled', route.domain, route.type);
    else
        -- The contract: leave out every field that it does not name, since it may be content.
        payload := coalesce((select jsonb_object_agg(f.key, f.value) from jsonb_each(payload) f
                             where f.key = any (route.payload_columns)), '{}');
        subject := case route.source_object_kind
            when 'trigger' then format('%I.%I', route.source_schema, route.source_table) end;
        if route.fail_closed then
            id := tidemark.emit(route.domain, route.type, payload, key, route.stream, subject_table => subject,
                                subject_ref => subject_ref, idempotency_key => idempotency_key);
        else
            begin
                id := tidemark.emit(route.domain, route.type, payload, key, route.stream, subject_table => subject,
                                    subject_ref => subject_ref, idempotency_key => idempotency_key);
            exception when others then
                -- The same rule as in tidemark.capture_template.
                if tidemark.is_transient(sqlstate) then
                    raise;
                end if;
                outcome := 'failed';
                why := case when sqlstate like 'TM%' then sqlerrm else 'SQLSTATE ' || sqlstate end;
            end;
        end if;
    end if;
    if outcome is not null then
        insert into tidemark.captured (at, route_id, outcome, rows, actor, reason)
        values (clock_timestamp(), route.id, outcome, 1, tidemark.login(), why);
    end if;
    return id;
end
$$;
comment on function tidemark.inbound_emit(text, jsonb, text, text, text) is
    'A function or a trigger of the application that has an inbound route of its kind calls it: it emits the route''s '
    'event in the caller''s transaction and returns its id. The payload keeps only the fields that the route''s '
    'payload_columns name. Null, without an error: the route is unknown or off; or it is in dry run or its type is not '
    'registered, with a row in tidemark.captured. Raises the errors of tidemark.emit where the event cannot be written '
    '(for a route that is not fail_closed: a row in tidemark.captured instead), and TM005 for the route of a table. '
    'Source: S1 fn_iu_outbound_on_version, fn_iu_create.';
grant execute on function tidemark.inbound_emit(text, jsonb, text, text, text) to tidemark_emitter;
