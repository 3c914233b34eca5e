create or replace function tidemark.command_envelope(document text, out call jsonb, out code text, out message text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    members constant text[] := array['event_id', 'service', 'command', 'command_version', 'schema_version', 'payload',
                                     'idempotency_key', 'occurred_at', 'trace_id', 'metadata'];
    whole constant jsonpath := 'strict $ ? (@.type() == "number" && @ >= 1 && @ <= 2147483647 && @ == @.floor())';
    body json;
    found_ record;
    doc jsonb;
begin
    call := '{}';
    code := 'envelope.invalid';
    if octet_length(document) > 1048576 then
        code := 'envelope.too_large';
        message := format('envelope: found %s bytes, wanted at most 1048576', octet_length(document));
        return;
    elsif document is null or btrim(document, E' \n\r\t') = '' then
        message := 'envelope: found nothing, wanted a JSON object';
        return;
    elsif ascii(document) < 9 then
        message := format('envelope: found the byte %s first, as Confluent''s framing has it, wanted plain JSON',
                          ascii(document));
        return;
    end if;
    begin
        body := document::json;
    exception when data_exception or statement_too_complex then
        message := 'envelope: found text that is not one JSON document in UTF-8, wanted a JSON object';
        return;
    end;
    if json_typeof(body) <> 'object' then
        message := format('envelope: found %s, wanted an object', json_typeof(body));
        return;
    end if;
    if tidemark.command_beyond(document) then
        message := 'envelope: found a number that a double cannot hold, wanted one from 5e-324 to 1.7e308 in magnitude';
        return;
    end if;

    begin
        doc := body::jsonb;
    exception when data_exception or statement_too_complex then
        message := E'envelope: found \\u0000, half of a surrogate pair, or a number beyond numeric, '
                   'wanted what PostgreSQL can store';
        return;
    end;

    -- A row for each object and array, with its place as ordinal numbers: names along the way may be long.
    with recursive node (path, value, depth) as (
        select array[]::integer[], body, 1
        union all
        select n.path || c.i::integer, c.value, n.depth + 1
        from node n cross join lateral (
            select o.value, o.i
            from json_each(case json_typeof(n.value) when 'object' then n.value else '{}' end)
                 with ordinality o (key, value, i)
            union all
            select a.value, a.i
            from json_array_elements(case json_typeof(n.value) when 'array' then n.value else '[]' end)
                 with ordinality a (value, i)) c
        where n.depth <= 64 and json_typeof(c.value) in ('object', 'array')
    )
    select t.depth, d.path, d.key into found_
    from (select max(n.depth) as depth from node n) t
    left join lateral (
        select n.path, k.key from node n cross join lateral (
            select o.key from json_object_keys(n.value) o (key) group by o.key having count(*) > 1) k
        where json_typeof(n.value) = 'object' order by n.path, k.key limit 1) d on true;
    if found_.depth > 64 then
        message := 'envelope: found members nested deeper than 64 levels, wanted 64 at most';
        return;
    elsif found_.key is not null then
        message := format('%s: found it twice, wanted it once', tidemark.command_place(body, found_.path, found_.key));
        return;
    end if;

    -- What can be read goes into the answer, also if the rest cannot.
    call := jsonb_strip_nulls(jsonb_build_object(
        'event_id', case when doc ->> 'event_id' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
                              then lower(doc ->> 'event_id') end,
        'service', case when doc ->> 'service' ~ '^[a-z][a-z0-9_-]{0,39}$' then doc ->> 'service' end,
        'command', case when jsonb_typeof(doc -> 'command') = 'string' then left(doc ->> 'command', 100) end,
        -- 1.0 and 1e0 are 1.
        'command_version', case when jsonb_path_exists(doc -> 'command_version', whole)
                                     then (doc ->> 'command_version')::numeric::integer end,
        'schema_version', case when jsonb_path_exists(doc -> 'schema_version', whole)
                                     then (doc ->> 'schema_version')::numeric::integer end,
        'idempotency_key', case when jsonb_typeof(doc -> 'idempotency_key') = 'string'
                                     then left(doc ->> 'idempotency_key', 200) end,
        'trace_id', case when jsonb_typeof(doc -> 'trace_id') = 'string' then left(doc ->> 'trace_id', 55) end));

    if doc ? 'specversion' then
        code := 'envelope.unsupported_version';
        message := 'specversion: found a CloudEvents envelope, wanted the ten members: the daemon takes CloudEvents';
        return;
    end if;
    select m.message into message from (
        select 1 as place, format('%s: found nothing, wanted it', name) as message, n
        from unnest(members) with ordinality e (name, n) where not doc ? name
        union all
        select 2, format('%s: found a member that the envelope does not have, wanted only %s', left(k, 100),
                         array_to_string(members, ', ')), n
        from jsonb_object_keys(doc) with ordinality e (k, n) where k <> all (members)
        union all
        select 3, format('%s: found %s, wanted %s', w.name, jsonb_typeof(doc -> w.name), w.kind), w.n
        from (values (1, 'event_id', 'string'), (2, 'service', 'string'), (3, 'command', 'string'),
                     (4, 'command_version', 'number'), (5, 'schema_version', 'number'), (6, 'payload', 'object'),
                     (7, 'idempotency_key', 'string'), (8, 'occurred_at', 'string'), (9, 'trace_id', 'string'),
                     (10, 'metadata', 'object')) w (n, name, kind)
        where jsonb_typeof(doc -> w.name) <> w.kind
        union all
        select 4, format('metadata.%s: found %s, wanted %s', m.key, jsonb_typeof(m.value),
                         case m.key when 'producer' then 'string' when 'tenant' then 'string' else 'object' end), 1
        from jsonb_each(case jsonb_typeof(doc -> 'metadata') when 'object' then doc -> 'metadata' else '{}' end) m
        where case m.key when 'producer' then 'string' when 'tenant' then 'string' when 'context' then 'object' end
              <> jsonb_typeof(m.value)
        union all
        select 4, format('metadata.%s: found a member that metadata does not have, wanted only producer, tenant, '
                         'context', left(m, 100)), 2
        from jsonb_object_keys(case jsonb_typeof(doc -> 'metadata') when 'object' then doc -> 'metadata'
                               else '{}' end) m
        where m not in ('producer', 'tenant', 'context')
        union all
        select 4, 'metadata.producer: found nothing, wanted it', 0
        where jsonb_typeof(doc -> 'metadata') = 'object' and not doc -> 'metadata' ? 'producer') m
    order by m.place, m.n limit 1;
    if message is not null then
        return;
    end if;

    message := case
        when not call ? 'event_id' then 'event_id: found a text that is no uuid, wanted a uuid'
        when not call ? 'service' then 'service: found no service''s name, wanted a lower-case letter, then letters, '
                                       'digits, "_", "-", at most 40 characters'
        when starts_with(doc ->> 'command', (doc ->> 'service') || '.')
            then format('command: found the name with its service, wanted the part behind "%s."', doc ->> 'service')
        when doc ->> 'command' !~ '^[a-z][a-z0-9_-]*([.][a-z][a-z0-9_-]*)*$' or length(doc ->> 'command') > 100
            then 'command: found no command''s name, wanted labels joined by dots, such as charge.capture'
        when not call ? 'command_version' then 'command_version: found a number that is no version, wanted a whole '
                                               'number from 1 to 2147483647'
        when not call ? 'schema_version'
            then 'schema_version: found a number that is no version, wanted a whole number from 1 to 2147483647'
        when length(doc ->> 'idempotency_key') not between 1 and 200
            then format('idempotency_key: found %s characters, wanted 1 to 200', length(doc ->> 'idempotency_key'))
        when not tidemark.is_rfc3339(doc ->> 'occurred_at')
            then 'occurred_at: found a text that is no time, wanted RFC 3339, such as 2026-01-31T12:00:00Z'
        when doc ->> 'trace_id' !~ '^([0-9a-f]{32}|[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2})$'
            then 'trace_id: found a text that is no trace id, wanted a W3C traceparent or 32 hex digits in lower '
                 'case'
        when length(doc -> 'metadata' ->> 'producer') not between 1 and 200
            then format('metadata.producer: found %s characters, wanted 1 to 200',
                        length(doc -> 'metadata' ->> 'producer'))
        when length(doc -> 'metadata' ->> 'tenant') not between 1 and 200
            then format('metadata.tenant: found %s characters, wanted 1 to 200', length(doc -> 'metadata' ->> 'tenant'))
    end;
    if message is null and octet_length((body -> 'metadata' -> 'context')::text) > 8192 then
        code := 'envelope.too_large';
        message := format('metadata.context: found %s bytes, wanted at most 8192',
                          octet_length((body -> 'metadata' -> 'context')::text));
    end if;
    if message is null then
        code := null;
        call := call || jsonb_strip_nulls(jsonb_build_object(
            'occurred_at', doc -> 'occurred_at', 'producer', doc -> 'metadata' -> 'producer',
            'tenant', doc -> 'metadata' -> 'tenant'))
            || jsonb_build_object('payload', doc -> 'payload',
                                  'context', coalesce(doc -> 'metadata' -> 'context', '{}'));
    end if;
end
$$;
comment on function tidemark.command_envelope(text) is
    'Reads the envelope of a command strictly: ten members, each of its type, none unknown, missing, doubled or null. '
    'call: the command, or of a bad envelope what could be read. code and message: what is wrong, as "member: found …, '
    'wanted …"; null: nothing.';
