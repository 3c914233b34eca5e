create or replace function tidemark.emit_all(
    events jsonb,
    strict boolean,
    own boolean,
    domains text[] default null,
    types text[] default null,
    payloads jsonb[] default null,
    keys text[] default null,
    streams text[] default null,
    lanes text[] default null,
    severities text[] default null,
    subject_tables text[] default null,
    subject_refs text[] default null,
    idempotency_keys text[] default null,
    traces text[] default null,
    actors text[] default null,
    occurred_at timestamptz[] default null,
    inbound_id integer default null)
returns uuid[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
-- A plan for the values of each call would be no better, and would be made each time.
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    at constant timestamptz := clock_timestamp();
    head constant text := tidemark.event_uuid_time(at);
    login constant name := tidemark.login(quick => own);
    fields constant text[] := array['domain', 'type', 'payload', 'key', 'stream', 'lane', 'severity', 'subject_table',
                                    'subject_ref', 'idempotency_key', 'trace', 'actor', 'occurred_at'];
    most constant integer := greatest(
        cardinality(domains), cardinality(types), cardinality(payloads), cardinality(keys), cardinality(streams),
        cardinality(lanes), cardinality(severities), cardinality(subject_tables), cardinality(subject_refs),
        cardinality(idempotency_keys), cardinality(traces), cardinality(actors), cardinality(occurred_at));
    made uuid[];
    ids uuid[];
    earlier uuid[];
    unknown integer;
    listeners boolean;
    asleep boolean;
    snapshot boolean;
begin
    if jsonb_typeof(events) is distinct from 'array' then
        raise exception using errcode = 'TM002',
            message = format('events is %s, not an array', coalesce(jsonb_typeof(events), 'null')),
            hint = 'Give a JSON array of objects: [{"domain": …, "type": …, "payload": {…}}].';
    end if;

    if most <> least(cardinality(domains), cardinality(types), cardinality(payloads), cardinality(keys),
                     cardinality(streams), cardinality(lanes), cardinality(severities), cardinality(subject_tables),
                     cardinality(subject_refs), cardinality(idempotency_keys), cardinality(traces),
                     cardinality(actors), cardinality(occurred_at))
    then
        raise exception using errcode = 'TM002', message = 'the arrays of events differ in length',
            hint = 'Give each array an element for each event, or leave the array out.';
    end if;

    -- One statement reads the events, checks them and the registry, and stores them.
    if idempotency_keys is null and not events @? '$[*].idempotency_key' then
        made := array(select (head || substr(gen_random_uuid()::text, 16))::uuid
                      from generate_series(1, jsonb_array_length(events) + coalesce(most, 0)));
        with stored as (
            insert into tidemark.outbox (event_id, created_at, occurred_at, lane, severity, domain, type, stream, key,
                                         subject_table, subject_ref, trace, actor, emitted_by, payload, inbound_id)
            select made[e.ord], at, coalesce(e.occurred_at_, at), coalesce(e.lane::tidemark.lane, 'immediate'),
                   coalesce(e.severity::tidemark.severity, 'info'), e.domain, e.type, e.stream, e.key, e.subject_table,
                   e.subject_ref, e.trace, coalesce(e.actor, login), nullif(login, coalesce(e.actor, login)), e.payload,
                   emit_all.inbound_id
            from tidemark.emit_given(events, fields, domains, types, payloads, keys, streams, lanes, severities,
                                     subject_tables, subject_refs, idempotency_keys, traces, actors, occurred_at) e
            left join tidemark.event_type t on t.domain = e.domain and t.type = e.type and t.enabled
            -- In this order, and the first for every event: a type that is not registered refuses no event.
            where case
                when not (tidemark.event_is_small(e.payload, e.key, e.stream, e.subject_table, e.subject_ref, e.trace,
                                                  e.actor, e.occurred_at_)
                          -- The payloads of commands' results and dead letters have limits of their own
                          -- (tidemark.command_execute): a partition would stay at a command whose result is refused.
                          or tidemark.event_check(format('event %s: ', e.ord), case
                                                      when emit_all.own and e.domain = 'commands' then '{}'
                                                      else e.payload end, e.key, e.stream, e.subject_table,
                                                  e.subject_ref, e.trace, e.actor, e.occurred_at_))
                     or t.domain is null
                    then false
                when (t.unchecked or emit_all.own and t.schema is null and not t.metadata_only)
                     and jsonb_typeof(e.payload) = 'object' then true
                else (not t.restricted or emit_all.own
                      or tidemark.domain_check(e.domain, format('event %s: ', e.ord), login))
                     and tidemark.payload_check(e.domain, e.type, e.payload, t.schema, t.metadata_only,
                                                format('event %s: ', e.ord)) end
            order by e.ord
            returning event_id
        )
        select array_agg(s.event_id),
               (select s.value = 'true' from tidemark.setting s where s.key = 'notify.listeners_enabled')
        into ids, listeners
        from stored s;
        if cardinality(ids) is distinct from cardinality(made) then
            ids := array(select case when m.id = any (ids) then m.id end
                         from unnest(made) with ordinality m (id, ord) order by m.ord);
            unknown := array_position(ids, null);
        else
            ids := made;
        end if;
    else
        -- An idempotency key is claimed first. A check returns true or raises.
        with input as materialized (
            select e.*, (head || substr(gen_random_uuid()::text, 16))::uuid as id,
                   t.domain is not null as registered, t.unchecked, t.schema, t.metadata_only
            from tidemark.emit_given(events, fields, domains, types, payloads, keys, streams, lanes, severities,
                                     subject_tables, subject_refs, idempotency_keys, traces, actors, occurred_at) e
            left join tidemark.event_type t on t.domain = e.domain and t.type = e.type and t.enabled
            where (e.idempotency_key is null or emit_all.own
                   or tidemark.idempotency_key_check(e.idempotency_key, format('event %s: ', e.ord)))
              and (tidemark.event_is_small(e.payload, e.key, e.stream, e.subject_table, e.subject_ref, e.trace, e.actor,
                                           e.occurred_at_)
                   or tidemark.event_check(format('event %s: ', e.ord), e.payload, e.key, e.stream, e.subject_table,
                                           e.subject_ref, e.trace, e.actor, e.occurred_at_))
              -- As in emit: a type that is not registered returns null.
              and (t.domain is null or not t.restricted or emit_all.own
                   or tidemark.domain_check(e.domain, format('event %s: ', e.ord), login))
        ), claimed as (
            insert into tidemark.emit_key as k (domain, idempotency_key, event_id, created_at, own)
            select i.domain, i.idempotency_key, i.id, at, emit_all.own from input i
            where i.registered and i.idempotency_key is not null
            -- Insert always in the same order, so that two callers cannot wait for each other in a circle; the first of
            -- equal keys in one call wins.
            order by i.domain, i.idempotency_key, i.ord
            on conflict do nothing
            returning k.event_id
        ), stored as (
            insert into tidemark.outbox (event_id, created_at, occurred_at, lane, severity, domain, type, stream, key,
                                         subject_table, subject_ref, idempotency_key, trace, actor, emitted_by, payload,
                                         inbound_id)
            select i.id, at, coalesce(i.occurred_at_, at), coalesce(i.lane::tidemark.lane, 'immediate'),
                   coalesce(i.severity::tidemark.severity, 'info'), i.domain, i.type, i.stream, i.key, i.subject_table,
                   i.subject_ref, i.idempotency_key, i.trace, coalesce(i.actor, login),
                   nullif(login, coalesce(i.actor, login)), i.payload,
                   emit_all.inbound_id
            from input i
            -- As in emit: a payload whose key was claimed before is not checked, since a type's schema may have changed
            -- between an emit and its repetition.
            where case when i.registered
                            and (i.idempotency_key is null or i.id in (select c.event_id from claimed c))
                       then i.unchecked and jsonb_typeof(i.payload) = 'object'
                            or tidemark.payload_check(i.domain, i.type, i.payload, i.schema, i.metadata_only,
                                                      format('event %s: ', i.ord)) end
            order by i.ord
        )
        select array_agg(case when i.fresh then i.id end),
               -- A key past its retention may be deleted before the next statement, not for this one.
               array_agg(case when i.registered and not i.fresh
                                   then (select k.event_id from tidemark.emit_key k
                                         where k.domain = i.domain and k.idempotency_key = i.idempotency_key) end),
               array_agg(i.domain), array_agg(i.type), array_agg(i.idempotency_key),
               min(i.ord) filter (where not i.registered),
               (select s.value = 'true' from tidemark.setting s where s.key = 'notify.listeners_enabled')
        into ids, earlier, domains, types, idempotency_keys, unknown, listeners
        from (select i.ord, i.id, i.domain, i.type, i.idempotency_key, i.registered,
                     i.registered and (i.idempotency_key is null or i.id in (select c.event_id from claimed c)) as fresh
              from input i order by i.ord) i;
    end if;

    -- As in emit: after the numbers are taken.
    asleep := case when pg_try_advisory_lock(1953064301, 1) then not pg_advisory_unlock(1953064301, 1)
                   when pg_try_advisory_lock_shared(1953064301, 1)
                        then pg_advisory_unlock_shared(1953064301, 1) end;
    snapshot := not own and current_setting('transaction_isolation') not like 'read %';
    if most is null and domains is null and (asleep or listeners or snapshot or unknown is not null) then
        select array_agg(e.event ->> 'domain' order by e.ord), array_agg(e.event ->> 'type' order by e.ord)
        into domains, types
        from jsonb_array_elements(events) with ordinality e (event, ord);
    end if;

    if strict and unknown is not null then
        -- The same statement that stores the events checks the types, so that no type is disabled in between; this
        -- error rolls back the call.
        raise exception using errcode = 'TM001',
            message = format('event %s: event type %s/%s is not registered or not enabled', unknown, domains[unknown],
                             types[unknown]),
            hint = format('Register it: select tidemark.type_set(%L, %L);', domains[unknown], types[unknown]);
    elsif unknown is not null then
        perform tidemark.emit_noted(e.domain, e.type, count(*))
        from unnest(ids, domains, types) e (id, domain, type)
        where e.id is null
          and not exists (select from tidemark.event_type t where t.domain = e.domain and t.type = e.type and t.enabled)
        group by e.domain, e.type;
    end if;

    if snapshot then
        perform tidemark.registry_check(d.domain, d.type)
        from (select distinct e.domain, e.type from unnest(domains, types) e (domain, type)) d;
    end if;

    if asleep or listeners then
        -- Of what is stored: the domain of a type that is not registered may be no name of a channel.
        perform tidemark.wake(array(select e.domain from unnest(ids, domains) e (id, domain) where e.id is not null),
                              listeners => coalesce(listeners, false));
    end if;

    if array_position(ids, null) is not null then
        if own then
            perform tidemark.own_key_check(e.domain, e.idempotency_key, format('event %s: ', e.ord))
            from unnest(ids, domains, idempotency_keys) with ordinality e (id, domain, idempotency_key, ord)
            where e.id is null;
        end if;
        -- A new statement sees the keys that other transactions committed while the claim waited.
        ids := array(
            select coalesce(e.id, k.event_id, e.earlier)
            from unnest(ids, earlier, domains, types, idempotency_keys) with ordinality
                e (id, earlier, domain, type, idempotency_key, ord)
            left join tidemark.event_type t on t.domain = e.domain and t.type = e.type and t.enabled
            left join tidemark.emit_key k on k.domain = t.domain and k.idempotency_key = e.idempotency_key
            order by e.ord);
    end if;
    return coalesce(ids, '{}');
end
$$;
comment on function tidemark.emit_all(jsonb, boolean, boolean, text[], text[], jsonb[], text[], text[], text[], text[],
                                      text[], text[], text[], text[], text[], timestamptz[], integer) is
    'Serves tidemark.emit_many, emit_arrays and their strict forms, source_emit, system_event and functions of packs; '
    'only its owner may call it. The events come as JSON, or as arrays with events []. Returns their ids by position. '
    'strict: raises TM001 for a type that is not registered or not enabled. own: the idempotency keys are Tidemark''s '
    'own ("tidemark:…"), restricted domains are open, and a payload of the domain commands has no limit here. '
    'inbound_id: of the events, for what emits a captured table.';
