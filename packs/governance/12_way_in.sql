-- Imports from an event_outbox of S0 and S1: a worker reads the old table, never writes it, and emits its rows.

create table if not exists governance.old_outbox (
    source text primary key references tidemark.source,
    table_name text not null,
    columns jsonb not null,
    domains jsonb not null default '{}' constraint domains_is_an_object check (jsonb_typeof(domains) = 'object')
);
do $$
begin
    -- Before table_name the columns were expressions over the row.
    if exists (select from pg_attribute a
               where a.attrelid = 'governance.old_outbox'::regclass and a.attname = 'table_name') then
        return;
    end if;
    alter table governance.old_outbox add column table_name text;
    update governance.old_outbox o
    set table_name = replace(substring(o.columns ->> 'idempotency_key' from '^''event_outbox/(.*)/'' '), '''''', ''''),
        columns = (
            select jsonb_object_agg(case c.key when 'idempotency_key' then 'id' else c.key end,
                                    (parse_ident(substring(c.value from '(?:^|, )r\.("(?:[^"]|"")*"|[^" ,)]+)')))[1])
            from jsonb_each_text(o.columns) c where c.key <> 'key');
    alter table governance.old_outbox alter column table_name set not null;
end
$$;
comment on table governance.old_outbox is
    'Old event_outbox tables to import, with the meaning of their columns. Written by governance.bring_in.';
comment on column governance.old_outbox.source is 'tidemark.source.source.';
comment on column governance.old_outbox.columns is
    'Field of tidemark.emit → column of the table; id: the column that makes the idempotency key.';
comment on column governance.old_outbox.table_name is
    'Name of the table when it was attached, part of the idempotency keys of its events.';
comment on column governance.old_outbox.domains is
    'Old domain → new domain; null: its events are skipped. Other domains keep their name.';

create or replace function governance.old_events(rows anyarray)
returns jsonb
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    old record;
    fields text;
    payload text;
    domain text;
    events jsonb;
    emitted bigint;
begin
    select o.*, s.time_zone, c.oid as relation into old
    from pg_type a join pg_type t on t.oid = a.typelem join pg_class c on c.oid = t.typrelid
    join pg_namespace n on n.oid = c.relnamespace
    join tidemark.source s on s.schema_name = n.nspname and s.table_name = c.relname
    join governance.old_outbox o on o.source = s.source
    where a.oid = pg_typeof(rows) order by o.source limit 1;
    if old is null then
        raise exception using errcode = '42P01',
            message = format('governance brings in no table of %s', pg_typeof(rows)),
            hint = 'Attach it: select governance.bring_in(''schema.event_outbox'');';
    end if;
    -- Only names of columns come from the table: what an administrator writes there runs with no rights of the worker.
    select string_agg(format('%L, %s', f.field, case f.field
               when 'domain' then 'coalesce($2 ->> d.domain, d.domain)' else f.sql end), ', ')
               filter (where f.field <> 'payload'),
           max(f.sql) filter (where f.field = 'domain'), max(f.sql) filter (where f.field = 'payload')
    into fields, domain, payload
    from (
        select c.key as field, case
            when c.key = 'payload' then format('coalesce(%s::jsonb, ''{}'')', governance.as_text(c.value))
            when c.key = 'occurred_at' and a.atttypid = 'timestamptz'::regtype then format('r.%I', c.value)
            when c.key = 'occurred_at' and a.atttypid = 'timestamp'::regtype
                 then format('r.%I at time zone %L', c.value, coalesce(old.time_zone, 'UTC'))
            else governance.as_text(c.value) end as sql
        from jsonb_each_text(old.columns) c
        left join pg_attribute a on a.attrelid = old.relation and a.attname = c.value and not a.attisdropped
        where c.key <> 'id' and c.value is not null
        union all
        -- The identity of the row, so that a row that is read again is not emitted again.
        select 'idempotency_key', format('%L || %s', 'event_outbox/' || old.table_name || '/',
                                         governance.as_text(old.columns ->> 'id'))
        union all
        -- Events of one subject have one key.
        select 'key', governance.as_text(old.columns ->> 'subject_ref')
        where old.columns ->> 'subject_ref' is not null) f;
    execute format('
select coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(%s)) || jsonb_build_object(''payload'', %s)
                          order by x.n), ''[]'')
from (select row_number() over () as n, r from unnest($1) r) x, lateral (select (x.r).*) r,
     lateral (select %s as domain) d
where not coalesce($2 -> d.domain = ''null'', false)',
        fields, coalesce(payload, '''{}''::jsonb'), coalesce(domain, 'null'))
    into events using rows, old.domains;
    -- The emit runs as the role that runs the worker, which needs the right to emit. It skips a row that was imported
    -- before.
    select count(e.event_id) into emitted from tidemark.emit_many_strict(events) e;
    return jsonb_build_object('rows_seen', cardinality(rows), 'emitted', emitted,
                              'there_already', jsonb_array_length(events) - emitted,
                              'passed_over', cardinality(rows) - jsonb_array_length(events));
end
$$;
comment on function governance.old_events(anyarray) is
    'Handler of the worker that governance.bring_in makes: emits the rows of an old event_outbox, with the rights of '
    'the role that runs the worker. The order is that of written_at, then of id; a failed row comes when it is '
    'retried, after later ones of its subject. Each row is emitted once, but a row that is read again after '
    'emit_key.retention is emitted again.';

create or replace function governance.bring_in(
    relation regclass,
    columns jsonb default '{}',
    domains jsonb default '{}',
    source jsonb default '{}',
    reason text default null)
returns setof tidemark.source
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    -- Field of an event → column of the old table.
    named constant jsonb := jsonb_build_object(
        'id', 'id', 'domain', 'event_domain', 'type', 'event_type', 'stream', 'event_stream', 'lane', 'delivery_lane',
        'severity', 'event_severity', 'subject_table', 'event_subject_table', 'subject_ref', 'event_subject_ref',
        'actor', 'actor_ref', 'payload', 'safe_payload', 'occurred_at', 'occurred_at',
        'written_at', 'created_at') || bring_in.columns;
    name text;
    source_ text;
    worker_ text;
    wrong text;
    made jsonb := '{}';
    c record;
begin
    select format('%I.%I', n.nspname, r.relname), coalesce(bring_in.source ->> 'source', r.relname || '_in')
    into name, source_
    from pg_class r join pg_namespace n on n.oid = r.relnamespace where r.oid = bring_in.relation;
    worker_ := source_;
    select k into wrong from jsonb_object_keys(bring_in.columns) k
    where k not in ('id', 'domain', 'type', 'stream', 'lane', 'severity', 'subject_table', 'subject_ref', 'actor',
                    'payload', 'occurred_at', 'written_at') limit 1;
    if found then
        raise exception using errcode = 'TM005', message = format('an event has no "%s"', wrong),
            hint = 'Fields: id, domain, type, stream, lane, severity, subject_table, subject_ref, actor, payload, '
                'occurred_at, written_at.';
    end if;

    for c in
        select f.key as field, f.value as column_name, t.typname, a.attname is not null as there,
               coalesce(t.typnamespace = 'pg_catalog'::regnamespace, false) as built_in
        from jsonb_each_text(named) f
        left join pg_attribute a on a.attrelid = bring_in.relation and a.attname = f.value and a.attnum > 0
            and not a.attisdropped
        left join pg_type t on t.oid = a.atttypid
        order by f.key
    loop
        if not c.there
            and (bring_in.columns ->> c.field is not null or c.field in ('id', 'domain', 'type', 'written_at')) then
            raise exception using errcode = 'TM005',
                message = format('table %s has no column %s', name, coalesce(c.column_name, 'for ' || c.field)),
                hint = format('Name the column: columns => ''{"%s": "…"}''.', c.field);
        elsif c.field in ('payload', 'occurred_at', 'written_at') and c.there
              and not (c.built_in
                       and c.typname = any (case c.field when 'payload' then array['json', 'jsonb']
                                                 else array['timestamptz', 'timestamp'] end))
        then
            raise exception using errcode = 'TM005',
                message = format('column %s of table %s is %s, and must be %s', c.column_name, name, c.typname,
                                 case c.field when 'payload' then 'json or jsonb' else 'a timestamp' end);
        end if;
        continue when not c.there or c.field = 'written_at';
        made := made || jsonb_build_object(c.field, c.column_name);
    end loop;

    return query select s.* from tidemark.source_set(source_, jsonb_build_object(
        'table', name, 'id_column', named ->> 'id', 'timestamp_column', named ->> 'written_at', 'safety', 'clock')
        || (bring_in.source - 'source'), bring_in.reason) s;
    insert into governance.old_outbox (source, table_name, columns, domains)
    values (source_, name, made, bring_in.domains)
    on conflict (source) do update set table_name = excluded.table_name, columns = excluded.columns,
        domains = excluded.domains;
    if not exists (select from tidemark.worker w where w.worker = worker_) then
        perform tidemark.worker_set(worker_,
                                    jsonb_build_object('source', 'table', 'handler', 'sql',
                                                       'handler_ref', 'governance.old_events',
            'description', format('Brings the events of %s in.', name)), bring_in.reason);
    end if;
    if not exists (select from tidemark.worker_cursor k where k.worker = worker_ and k.source = source_) then
        perform tidemark.worker_source_add(worker_, source_, bring_in.reason);
    end if;
end
$$;
comment on function governance.bring_in(regclass, jsonb, jsonb, jsonb, text) is
    'Makes a worker, named as the table with _in, that emits the rows of an old event_outbox, which is never written. '
    'columns: the names that differ from those of S0 and S1, {"domain": "event_domain", "payload": "safe_payload", '
    '"written_at": "created_at", …}. domains: {"system": "old_system"} renames a domain, null skips its events. '
    'source: name ("source") and columns of tidemark.source; default safety clock. The role that runs the worker needs '
    'select on the table, tidemark_emitter, and grants for restricted domains; types are registered first. Returns the '
    'source. Raises TM005 with the name of the missing or unfit column, and the errors of tidemark.source_set.';
