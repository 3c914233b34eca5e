create or replace function tidemark.configuration_set(
    kind text, name text, definition jsonb, reason text, prune boolean)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    columns constant jsonb := (
        select k.defaults - k.kept from tidemark.configuration_kind k where k.kind = configuration_set.kind)
        || (definition - '{emitters,trigger,sources}'::text[]);
    of_type constant text[] := regexp_match(name, '^([^/]*)/(.*)$');
    other text;
begin
    if kind in ('domain', 'type') and split_part(name, '/', 1) in ('system', 'commands')
        or kind = 'heartbeat' and (name like 'daemon/%' or exists (
            select from tidemark.worker_cursor c where tidemark.executor_id(c.worker, c.source, c.shard) = name))
        or kind = 'worker' and (definition ->> 'source' = 'kafka' or exists (
            select from tidemark.worker w where w.worker = configuration_set.name and w.source = 'kafka'))
    then
        raise exception using errcode = 'TM005', message = 'it is Tidemark''s own, and no file''s';
    end if;
    select k into other from jsonb_object_keys(definition) k
    where k <> all (case kind when 'gate' then '{open}'
                    else '{kind,domain_scope,expected_cadence_seconds,stale_threshold_seconds}'::text[] end)
      and kind in ('gate', 'heartbeat')
    limit 1;
    if found then
        raise exception using errcode = 'TM005', message = format('a %s has no "%s" that can be set', kind, other);
    end if;
    case kind
    when 'domain' then
        if definition ? 'emitters' and not coalesce((definition ->> 'restricted')::boolean, false) then
            raise exception using errcode = 'TM005', message = 'emitters need restricted: true',
                hint = 'Into a domain that is not restricted every emitter may emit.';
        end if;
        perform tidemark.domain_set(name, columns, reason);
        if definition ? 'emitters' then
            perform tidemark.domain_grant(name, e.role, reason)
            from jsonb_array_elements_text(definition -> 'emitters') e (role);
            perform tidemark.domain_revoke(name, e.role, reason) from tidemark.domain_emitter e
            where e.domain = name and not definition -> 'emitters' ? e.role;
        end if;
    when 'type' then
        if not exists (select from tidemark.domain d where d.domain = of_type[1]) then
            raise exception using errcode = 'TM004',
                message = format('there is no domain "%s"', coalesce(of_type[1], name)),
                hint = 'A type is named DOMAIN/TYPE; add the domain to the domains of a file.';
        end if;
        perform tidemark.type_set(of_type[1], of_type[2], columns, reason);
    when 'capture' then
        perform tidemark.inbound_route_set(name, columns, reason);
        perform tidemark.configuration_trigger(name, definition ->> 'trigger', reason);
    when 'source' then
        perform tidemark.source_set(name, columns, reason);
    when 'worker' then
        perform tidemark.worker_set(name, columns, reason);
        perform tidemark.worker_source_add(name, s.source, reason)
        from jsonb_array_elements_text(coalesce(definition -> 'sources', '[]')) s (source);
        for other in
            select distinct c.source from tidemark.worker_cursor c
            where c.worker = name and c.source <> 'outbox' and prune and not definition -> 'sources' ? c.source
        loop
            perform tidemark.worker_source_remove(name, other, reason);
        end loop;
    when 'route' then
        perform tidemark.route_set(name, columns, reason);
    when 'heartbeat' then
        -- Registering anew forgets since when the executor is watched.
        perform tidemark.heartbeat_register(name, h.kind, array(select jsonb_array_elements_text(h.domain_scope)),
            make_interval(secs => h.expected_cadence_seconds), make_interval(secs => h.stale_threshold_seconds),
            coalesce((select b.payload from tidemark.heartbeat b where b.executor_id = name), '{}'), reason)
        from (select coalesce(d.kind, 'external_worker') as kind, coalesce(d.domain_scope, '[]') as domain_scope,
                     coalesce(d.expected_cadence_seconds, 60) as expected_cadence_seconds,
                     coalesce(d.stale_threshold_seconds,
                              3 * coalesce(d.expected_cadence_seconds, 60)) as stale_threshold_seconds
              from jsonb_to_record(definition) d (kind text, domain_scope jsonb, expected_cadence_seconds integer,
                                                  stale_threshold_seconds integer)) h
        where not exists (
            select from tidemark.heartbeat b
            where b.executor_id = name and to_jsonb(b) @> to_jsonb(h) and to_jsonb(b.domain_scope) = h.domain_scope);
    when 'gate' then
        perform tidemark.gate_set(name, (definition ->> 'open')::boolean, reason);
    else
        raise exception using errcode = 'TM005', message = format('there is no kind "%s"', kind),
            hint = 'Kinds: domain, type, capture, source, worker, route, heartbeat, gate.';
    end case;
end
$$;
comment on function tidemark.configuration_set(text, text, jsonb, text, boolean) is
    'Makes or changes one thing of tidemark.configuration() by the function for its kind. What the definition leaves '
    'out is as it is by default; enabled, dry_run, emitters, trigger and sources stay as they are. prune: sources that '
    'the definition does not list are taken from a worker.';
grant execute on function tidemark.configuration_set(text, text, jsonb, text, boolean) to tidemark_admin;
