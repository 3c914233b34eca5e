-- Makes a table of the application a source.

create or replace function governance.watch(
    relation regclass,
    kind text,
    columns jsonb default '{}',
    source jsonb default '{}',
    reason text default null)
returns setof tidemark.source
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    named jsonb := jsonb_build_object('collection', 'collection_name', 'entity', 'entity_code') || watch.columns;
    name text;
    source_ text;
    definition jsonb;
    missing text;
    other record;
    worker_ text;
begin
    -- One after another: each looks at what the others watch.
    lock table governance.watched in share row exclusive mode;
    if watch.kind is null or watch.kind not in ('birth', 'change') then
        raise exception using errcode = 'TM005',
            message = format('kind is %s, and must be birth or change', coalesce(watch.kind, 'null')),
            hint = 'birth: its rows make candidates. change: its rows say that one changed.';
    end if;
    select k into missing from jsonb_object_keys(watch.columns) k
    where k not in ('collection', 'entity', 'address') limit 1;
    if found then
        raise exception using errcode = 'TM005',
            message = format('there is no part "%s" of a candidate''s name', missing),
            hint = 'Parts: collection, entity, address.';
    end if;
    select format('%I.%I', n.nspname, c.relname),
           coalesce(watch.source ->> 'source',
                    case when c.oid = 'tidemark.outbox'::regclass then 'tidemark_outbox'
                         else c.relname end) into name, source_
    from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = watch.relation;
    -- The address is optional: by default it is the column canonical_address, if the table has one.
    if not named ? 'address' and exists (
        select from pg_attribute a where a.attrelid = watch.relation and a.attname = 'canonical_address'
                                     and not a.attisdropped) then
        named := named || '{"address": "canonical_address"}';
    end if;
    select string_agg(w.value, ', ' order by w.key) into missing from jsonb_each_text(named) w
    where w.value is not null
      and not exists (select from pg_attribute a where a.attrelid = watch.relation and a.attname = w.value
                                                   and a.attnum > 0 and not a.attisdropped);
    if missing is not null or named ->> 'collection' is null or named ->> 'entity' is null then
        raise exception using errcode = 'TM005',
            message = format('table %s has no column %s', name, coalesce(missing, 'named for collection or entity')),
            hint = 'Name them: columns => ''{"collection": "…", "entity": "…", "address": "…"}''.';
    end if;

    -- The pack's own events do not change a candidate.
    definition := jsonb_build_object('table', name, 'id_column', 'id', 'safety', 'sequence',
        'key_columns', jsonb_build_array(named ->> 'collection', named ->> 'entity'),
        'group_key', jsonb_build_array(named ->> 'collection', named ->> 'entity'))
        || case when watch.relation = 'tidemark.outbox'::regclass
                     then '{"id_column": "seq", "filter": "domain <> ''governance''"}' else '{}' end::jsonb
        || (watch.source - 'source');
    return query select s.* from tidemark.source_set(source_, definition, watch.reason) s;

    -- The workers get rows of a table, and find by the table what its columns mean.
    select w.source, w.kind into other
    from governance.watched w join tidemark.source o on o.source = w.source
    join tidemark.source s on (s.schema_name, s.table_name) = (o.schema_name, o.table_name)
    where s.source = source_ and o.source <> source_
      and (w.kind, w.collection_column, w.entity_column, w.address_column, o.id_column) is distinct from
          (watch.kind, named ->> 'collection', named ->> 'entity', named ->> 'address', s.id_column)
    limit 1;
    if found then
        raise exception using errcode = 'TM005',
            message = format('table %s is watched as %s, with another kind or other columns', name, other.source),
            hint = format('A table has one meaning. To take that one away: '
                          'select governance.unwatch(%L, ''REASON'');', other.source);
    end if;
    if watch.kind = 'change' and exists (
        select from tidemark.worker_cursor c where c.worker = 'gov_backfill_sweep' and c.source = source_) then
        raise exception using errcode = 'TM005',
            message = format('source %s is read by gov_backfill_sweep, which makes candidates of its rows', source_),
            hint = format('Take it from the sweep first: tidemark worker detach gov_backfill_sweep %s', source_);
    end if;

    perform set_config('tidemark.reason', coalesce(watch.reason, ''), true);
    insert into governance.watched (source, kind, collection_column, entity_column, address_column)
    values (source_, watch.kind, named ->> 'collection', named ->> 'entity', named ->> 'address')
    on conflict (source) do update set kind = excluded.kind, collection_column = excluded.collection_column,
        entity_column = excluded.entity_column, address_column = excluded.address_column;
    foreach worker_ in array case watch.kind when 'birth' then array['gov_backfill_sweep', 'gov_handoff_intake']
                                  else array['gov_handoff_intake'] end loop
        if not exists (select from tidemark.worker_cursor c where c.worker = worker_ and c.source = source_) then
            perform tidemark.worker_source_add(worker_, source_, watch.reason);
        end if;
    end loop;
    if watch.kind = 'birth' and not exists (select from governance.snapshot) then
        perform governance.audit_plan(clock_timestamp() + interval '7 days', '7 days', 5000);
    end if;
end
$$;
comment on function governance.watch(regclass, text, jsonb, jsonb, text) is
    'Makes the workers read a table, which they never write: grant select on it to the role that runs them. kind: '
    'birth (its rows make candidates) or change (its rows say that a candidate changed). columns: the columns that '
    'name the candidate, by default {"collection": "collection_name", "entity": "entity_code", "address": '
    '"canonical_address"}; address may be null. source: name ("source", default: that of the table) and columns of '
    'tidemark.source; default id_column id, safety sequence. Returns the source. Raises TM005 with the name of the '
    'missing column, where another source of the table has another kind or other columns, and for the kind change '
    'while gov_backfill_sweep reads the source; and the errors of tidemark.source_set.';

create or replace function governance.unwatch(source text, reason text)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    readers text;
    was_watched boolean;
begin
    if coalesce(btrim(unwatch.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'unwatching a table needs a reason';
    end if;
    -- Also governance.bring_in may be about to let a worker read the source.
    lock table governance.watched, governance.old_outbox in share row exclusive mode;
    select string_agg(distinct c.worker, ', ') into readers
    from tidemark.worker_cursor c join tidemark.worker w on w.worker = c.worker
    where c.source = unwatch.source and w.handler_ref like 'governance.%';
    if readers is not null then
        raise exception using errcode = 'TM005',
            message = format('source %s is read by %s', unwatch.source, readers),
            hint = format('Take it from each first: tidemark worker detach WORKER %s', unwatch.source);
    end if;
    perform set_config('tidemark.reason', unwatch.reason, true);
    delete from governance.watched w where w.source = unwatch.source;
    was_watched := found;
    delete from governance.old_outbox o where o.source = unwatch.source;
    if not (was_watched or found) then
        raise exception using errcode = 'TM004', message = format('governance does not watch "%s"', unwatch.source),
            hint = 'See: select source from governance.watched union select source from governance.old_outbox;';
    end if;
end
$$;
comment on function governance.unwatch(text, text) is
    'Undoes governance.watch, and governance.bring_in, for a source that none of the pack''s workers reads any more. '
    'The table, the source and the candidates stay. Raises TM004, TM005 (no reason, or workers still read the source: '
    'the message names them).';

do $$
declare
    t record;
begin
    -- In an installation from before governance.watch refused it.
    for t in
        select format('%I.%I', o.schema_name, o.table_name) as name,
               string_agg(w.source, ', ' order by w.source) as sources
        from governance.watched w join tidemark.source o on o.source = w.source
        group by o.schema_name, o.table_name
        having count(distinct (w.kind, w.collection_column, w.entity_column, w.address_column, o.id_column)) > 1
    loop
        raise warning 'table % is watched with more than one meaning, as %: the workers apply one of them to all rows',
            t.name, t.sources
            using hint = 'Take away those that are wrong: select governance.unwatch(''SOURCE'', ''REASON'');';
    end loop;
end
$$;
