create or replace function tidemark.emit_all(events jsonb, strict boolean, own boolean)
returns table ("position" integer, event_id uuid)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    at constant timestamptz := clock_timestamp();
    login constant name := tidemark.login();
    fields constant text[] := array['domain', 'type', 'payload', 'key', 'stream', 'lane', 'severity', 'subject_table',
                                    'subject_ref', 'idempotency_key', 'trace', 'actor', 'occurred_at'];
    bad record;
    ids uuid[];
    unknown integer;
    awake boolean;
    asleep boolean := false;
    listeners boolean;
begin
    if jsonb_typeof(events) is distinct from 'array' then
        raise exception using errcode = 'TM002',
            message = format('events is %s, not an array', coalesce(jsonb_typeof(events), 'null')),
            hint = 'Give a JSON array of objects: [{"domain": …, "type": …, "payload": {…}}].';
    end if;

    select e.ord, f.name into bad
    from jsonb_array_elements(events) with ordinality e (event, ord)
    left join lateral (
        select k as name from jsonb_object_keys(case jsonb_typeof(e.event) when 'object' then e.event else '{}' end) k
        where k <> all (fields) limit 1) f on true
    where jsonb_typeof(e.event) <> 'object' or f.name is not null
    order by e.ord limit 1;
    if found then
        raise exception using errcode = 'TM002',
            message = case when bad.name is null then format('event %s is not an object', bad.ord)
                      else format('event %s has the unknown field "%s"', bad.ord, bad.name) end,
            hint = 'Fields: ' || array_to_string(fields, ', ') || '.';
    end if;

    select e.ord, f.key, f.value into bad
    from jsonb_array_elements(events) with ordinality e (event, ord)
    cross join lateral jsonb_each(e.event) f
    where f.key = 'payload' and jsonb_typeof(f.value) <> 'object'
       or f.key = 'lane' and f.value <> all (
           array(select to_jsonb(l::text) from unnest(enum_range(null::tidemark.lane)) l) || 'null'::jsonb)
       or f.key = 'severity' and f.value <> all (
           array(select to_jsonb(l::text) from unnest(enum_range(null::tidemark.severity)) l) || 'null'::jsonb)
    order by e.ord, f.key limit 1;
    if found then
        raise exception using errcode = 'TM002',
            message = case bad.key
                when 'payload' then format('event %s: payload is %s, not an object', bad.ord, jsonb_typeof(bad.value))
                else format('event %s: there is no %s %s', bad.ord, bad.key, bad.value) end,
            hint = 'Lanes: immediate, batch. Severities: info, warning, high, critical.';
    end if;

    if not own then
        perform tidemark.idempotency_key_check(e.event ->> 'idempotency_key', format('event %s: ', e.ord))
        from jsonb_array_elements(events) with ordinality e (event, ord)
        where e.event ->> 'idempotency_key' is not null;
    end if;

    perform tidemark.event_check(format('event %s: ', e.ord), e.payload, e.key, e.stream, e.subject_table,
                                 e.subject_ref, e.trace, e.actor, e.occurred_at)
    from rows from (jsonb_to_recordset(events) as (
            payload jsonb, key text, stream text, subject_table text, subject_ref text, trace text, actor text,
            occurred_at timestamptz)) with ordinality
        e (payload, key, stream, subject_table, subject_ref, trace, actor, occurred_at, ord)
    where not tidemark.event_is_small(e.payload, e.key, e.stream, e.subject_table, e.subject_ref, e.trace, e.actor,
                                      e.occurred_at);

    if not own then
        perform tidemark.domain_check(e.domain, format('event %s: ', e.ord), login)
        from rows from (jsonb_to_recordset(events) as (domain text, type text)) with ordinality e (domain, type, ord)
        join tidemark.event_type t on t.domain = e.domain and t.type = e.type and t.enabled
        where t.restricted;
    end if;

    -- Only registered types go on; the others return null, as in emit.
    perform tidemark.payload_check(e.domain, e.type, coalesce(e.payload, '{}'), t.schema, t.metadata_only,
                                   format('event %s: ', e.ord))
    from rows from (jsonb_to_recordset(events) as (domain text, type text, payload jsonb))
         with ordinality e (domain, type, payload, ord)
    join tidemark.event_type t on t.domain = e.domain and t.type = e.type and t.enabled
    where not t.unchecked;

    with input as materialized (
        select e.*, tidemark.event_uuid(at) as id
        from rows from (jsonb_to_recordset(events) as (
                domain text, type text, payload jsonb, key text, stream text, lane tidemark.lane,
                severity tidemark.severity, subject_table text, subject_ref text, idempotency_key text, trace text,
                actor text, occurred_at timestamptz)) with ordinality
            e (domain, type, payload, key, stream, lane, severity, subject_table, subject_ref, idempotency_key, trace,
               actor, occurred_at, ord)
        join tidemark.event_type t on t.domain = e.domain and t.type = e.type and t.enabled
    ), claimed as (
        insert into tidemark.emit_key as k (domain, idempotency_key, event_id, created_at, own)
        select i.domain, i.idempotency_key, i.id, at, emit_all.own from input i
        where i.idempotency_key is not null
        -- Insert always in the same order, so that two callers cannot wait for each other in a circle; the first of
        -- equal keys in one call wins.
        order by i.domain, i.idempotency_key, i.ord
        on conflict do nothing
        returning k.event_id
    ), stored as (
        insert into tidemark.outbox (event_id, created_at, occurred_at, lane, severity, domain, type, stream, key,
                                     subject_table, subject_ref, idempotency_key, trace, actor, emitted_by, payload)
        select i.id, at, coalesce(i.occurred_at, at), coalesce(i.lane, 'immediate'), coalesce(i.severity, 'info'),
               i.domain, i.type, i.stream, i.key, i.subject_table, i.subject_ref, i.idempotency_key, i.trace,
               coalesce(i.actor, login), nullif(login, coalesce(i.actor, login)),
               coalesce(i.payload, '{}')
        from input i
        where i.idempotency_key is null or i.id in (select c.event_id from claimed c)
        order by i.ord
    )
    select array_agg(case when i.idempotency_key is null or i.id in (select c.event_id from claimed c) then i.id end
                     order by e.ord), min(e.ord) filter (where i.ord is null)
    into ids, unknown
    from jsonb_array_elements(events) with ordinality e (event, ord)
    left join input i on i.ord = e.ord;
    if strict and unknown is not null then
        -- The same statement that stores the events checks the types, so that no type is disabled in between; this
        -- error rolls back the call.
        raise exception using errcode = 'TM001',
            message = format('event %s: event type %s/%s is not registered or not enabled', unknown,
                             events -> (unknown - 1) ->> 'domain', events -> (unknown - 1) ->> 'type'),
            hint = format('Register it: select tidemark.type_set(%L, %L);',
                          events -> (unknown - 1) ->> 'domain', events -> (unknown - 1) ->> 'type');
    elsif unknown is not null then
        perform tidemark.emit_noted(e.domain, e.type, count(*))
        from rows from (jsonb_to_recordset(events) as (domain text, type text)) with ordinality e (domain, type, ord)
        where ids[e.ord] is null
          and not exists (select from tidemark.event_type t where t.domain = e.domain and t.type = e.type and t.enabled)
        group by e.domain, e.type;
    end if;

    if not own and current_setting('transaction_isolation') not like 'read %' then
        perform tidemark.registry_check(d.domain, d.type)
        from (select distinct e.event ->> 'domain' as domain, e.event ->> 'type' as type
              from jsonb_array_elements(events) e (event)) d;
    end if;

    -- As in emit: after the numbers are taken.
    if pg_try_advisory_lock(1953064301, 1) then
        awake := pg_advisory_unlock(1953064301, 1);
    elsif pg_try_advisory_lock_shared(1953064301, 1) then
        awake := pg_advisory_unlock_shared(1953064301, 1);
        asleep := true;
    end if;
    listeners := tidemark.gate_open('notify.listeners_enabled');
    if asleep or listeners then
        perform tidemark.wake(array(select distinct e.event ->> 'domain' from jsonb_array_elements(events) e (event)
                                    where e.event ->> 'domain' is not null), listeners => listeners);
    end if;

    if own then
        perform tidemark.own_key_check(e.domain, e.idempotency_key, format('event %s: ', e.ord))
        from rows from (jsonb_to_recordset(events) as (domain text, idempotency_key text))
             with ordinality e (domain, idempotency_key, ord)
        where ids[e.ord] is null;
    end if;

    -- A new statement sees the keys that other transactions committed while the claim waited.
    return query
    select e.ord::integer, coalesce(ids[e.ord], k.event_id)
    from rows from (jsonb_to_recordset(events) as (domain text, type text, idempotency_key text))
         with ordinality e (domain, type, idempotency_key, ord)
    left join tidemark.event_type t on t.domain = e.domain and t.type = e.type and t.enabled
    left join tidemark.emit_key k on k.domain = t.domain and k.idempotency_key = e.idempotency_key
    order by e.ord;
end
$$;
comment on function tidemark.emit_all(jsonb, boolean, boolean) is
    'Serves tidemark.emit_many, emit_many_strict, source_emit, system_event and functions of packs; only its owner '
    'may call it. strict: raises TM001 for a type that is not registered or not enabled. own: the idempotency keys '
    'are Tidemark''s own ("tidemark:…"), and restricted domains are open.';
