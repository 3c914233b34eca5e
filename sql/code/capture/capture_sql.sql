-- public
-- The cost of a statement for one row is its setup, including each function in it. So names are written out, and the
-- statement has only the parts that the operation needs.
create or replace function tidemark.capture_sql(
    relation regclass,
    operation text,
    contract text[],
    policy text,
    given text,
    out counted text,
    out written text,
    out may_fail boolean,
    out missing text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    part record;
    subject text;
    told constant text := case operation when 'moved' then 'update' when 'vanished' then 'delete' else operation end;
    rest text;
    changes text;
    payload text;
    event text;
    -- A payload of a few values of fixed size is small, and its text is not made to see that. A column's name occurs
    -- four times at most, a value three times.
    small constant boolean := (
        select sum(v.bytes) < 900
        from (
            select 100 + octet_length(to_json(n.nspname::text)::text)
                   + octet_length(to_json(k.relname::text)::text) as bytes
            from pg_class k join pg_namespace n on n.oid = k.relnamespace where k.oid = relation
            union all
            select 4 * octet_length(to_json(a.attname::text)::text) + case
                when not (a.attname = any (contract) or exists (
                    select from pg_index i
                    where i.indrelid = relation and i.indisprimary and a.attnum = any (i.indkey))) then 0
                when a.atttypid = any (array['boolean', 'smallint', 'integer', 'bigint', 'uuid', 'date', 'timestamp',
                                             'timestamptz']::regtype[]) then 150
                else 900 end
            from pg_attribute a where a.attrelid = relation and a.attnum > 0 and not a.attisdropped) v);
    checks constant text := $checks$(g.unchecked
             or tidemark.payload_check(g.domain, g.type, c.payload, g.schema, g.metadata_only, g.place))$checks$
        || case when small then ' and (octet_length(g.stream) > 1000 is not true' else $checks$
        and (tidemark.event_is_small(c.payload, c.ref, g.stream, null, c.ref, null, null, null)$checks$ end || $checks$
             or tidemark.event_check(g.place, c.payload, c.ref, g.stream, null, c.ref, null, null, null))$checks$;
begin
    select c.*, n.nspname, k.relname into part
    from pg_class k join pg_namespace n on n.oid = k.relnamespace
    cross join tidemark.capture_columns(relation, contract) c
    where k.oid = relation;
    may_fail := part.may_fail;
    missing := part.missing;
    subject := format('%I.%I', part.nspname, part.relname);

    if operation in ('moved', 'vanished') then
        rest := tidemark.capture_rest(relation, part.key_json);
    end if;
    changes := case operation
        when 'insert' then format(' from (select %s from tidemark_new x) n', part.names)
        when 'delete' then format(' from (select %s from tidemark_old x) n', part.names)
        -- Both transition tables get a row's old and new version at the same time, so the versions have the same
        -- position in both. Nothing else pairs them: a key can change, or be missing. Every row has both versions, but
        -- a full join is never a nested loop: the plan is kept, and was made for the number of rows of the first
        -- statement.
        when 'update' then format(
            ' from (select row_number() over () as ord, %1$s from tidemark_new x) n'
            ' full join (select row_number() over () as ord, %1$s from tidemark_old x) o on o.ord = n.ord'
            ' cross join lateral (select %2$s as changed offset 0) u where u.changed <> ''{}''', part.names,
            part.changed)
        -- Not all have both versions. Each key without the partitions' columns has as many rows in both, or none in the
        -- new ones (tidemark.capture_unclear).
        when 'moved' then format(
            ' from (select y.*, row_number() over (partition by y.rest order by y.ord) as nth from (select n.*, '
            '%3$s as rest from (select row_number() over () as ord, %1$s from tidemark_new x) n) y) n'
            ' join (select y.*, row_number() over (partition by y.rest order by y.ord) as nth from (select n.*, '
            '%3$s as rest from (select row_number() over () as ord, %1$s from tidemark_old x) n) y) o '
            'on o.rest = n.rest and o.nth = n.nth'
            ' cross join lateral (select %2$s as changed offset 0) u where u.changed <> ''{}''', part.names,
            part.changed, rest)
        when 'vanished' then format(
            ' from (select v.* from (select n.*, %2$s as rest from (select %1$s from tidemark_old x) n) v'
            ' where not exists (select from (select %2$s as rest from (select %1$s from tidemark_new x) n) w '
            'where w.rest = v.rest)) n', part.names, rest)
        else '' end;
    counted := 'select count(*)' || changes;

    -- Set values into a constant: that costs half as much as building the object anew for each row.
    payload :=
        format('jsonb %L',
               jsonb_build_object('schema', part.nspname, 'table', part.relname, 'operation', told,
                                  'primary_key', null));
    if operation <> 'truncate' and part.key_json <> 'null::jsonb' then
        payload := format('jsonb_set(%s, ''{primary_key}'', %s)', payload, part.key_json);
    end if;
    if told = 'update' then
        payload := format('jsonb_set(%s, ''{changed}'', to_jsonb(u.changed))', payload);
        if part.key_changed <> 'false' then
            payload := format('%s || case when %s then jsonb_build_object(''old_primary_key'', %s) else ''{}'' end',
                              payload, part.key_changed, part.old_key_json);
        end if;
    end if;
    if cardinality(contract) > 0 then
        payload := format('jsonb_set(%s, ''{columns}'', case when tidemark.capture_fits(%s, g.place) then %s end)',
            payload, part.bytes, part.shown);
    end if;
    -- The id is volatile: outside this subquery it would need another step of the plan.
    event := format('(select (g.head || substr(gen_random_uuid()::text, 16))::uuid as id, %s as ref, %s '
                    'as payload%s%s offset 0) c',
                    case operation when 'truncate' then 'null::text' else part.key_text end,
        payload, case told when 'update' then ', n.ord' end, changes);

    -- One statement for all rows takes the lock on the log before the first number, as emit does.
    written := 'insert into tidemark.outbox (event_id, created_at, occurred_at, lane, severity, domain, type, stream, '
               'key, subject_table, subject_ref, idempotency_key, actor, inbound_id, payload) ';
    if policy = 'transaction' then
        -- The key belongs to this transaction alone, so that no other transaction waits for it, and has a prefix that
        -- no emitter can use. Transaction ids repeat in a restored copy: hence the time. The key hashes the primary key
        -- as JSON, since two keys may have the same text.
        written := format(
            'with event as materialized ('
            'select g.*, c.*, row_number() over (%5$s) as n,'
            ' case when c.ref is not null then format(''tidemark:capture/%%s/%%s.%%s/%%s'', g.route, '
            'pg_current_xact_id(), (extract(epoch from transaction_timestamp()) * 1000000)::bigint, '
            'encode(sha256(convert_to(c.payload ->> ''primary_key'', ''UTF8'')), ''hex'')) end as once from (select '
            '%1$s) g cross join lateral %2$s where %6$s), claimed as (insert into tidemark.emit_key as k (domain, '
            'idempotency_key, event_id, created_at, own) select e.domain, e.once, e.id, e.at, true from event e where '
            'e.once is not null order by e.n on conflict do nothing returning k.event_id) %3$sselect e.id, e.at, e.at, '
            '''immediate'', ''info'', e.domain, e.type, e.stream, e.ref, %4$L, e.ref, e.once, (select '
            'tidemark.writer()), e.route, e.payload from event e where e.once is null or e.id in (select k.event_id '
            'from claimed k) or tidemark.own_key_check(e.domain, e.once, e.place) order by e.n',
            given, event, written, subject, case told when 'update' then 'order by c.ord' end, checks);
    else
        written := format(
            '%3$s'
            'select c.id, g.at, g.at, ''immediate'', ''info'', g.domain, g.type, g.stream, c.ref, %4$L, c.ref, null, '
            '(select tidemark.writer()), g.route, c.payload from (select %1$s) g cross join lateral %2$s '
            'where %6$s%5$s',
            given, event, written, subject, case told when 'update' then ' order by c.ord' end, checks);
    end if;
end
$$;
comment on function tidemark.capture_sql(regclass, text, text[], text, text) is
    'SQL for the trigger of a table, which reads its transition tables. counted: counts the changed rows. written: '
    'inserts their events. given: a list of expressions named at, head (tidemark.event_uuid_time), route (its id), '
    'place (begins messages), domain, type, stream, unchecked, schema and metadata_only. operation: insert, update, '
    'delete, truncate; moved and vanished for an update after which some rows have no new version: of those that have, '
    'and of the others. may_fail: JSON in the '
    'contract may be unreadable. missing: columns of the contract that the table lacks or cannot show.';
grant execute on function tidemark.capture_sql(regclass, text, text[], text, text) to tidemark_reader;
