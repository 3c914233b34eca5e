-- A page is one range of one index: on (timestamp, id), or on the id for the safety sequence. Without that index every
-- page reads the whole table.
create or replace function tidemark.source_check_index(definition tidemark.source, relation oid)
returns table ("check" text, status text, detail text, hint text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    name constant text := format('%I.%I', definition.schema_name, definition.table_name);
    parts constant oid[] := array(select relation union select p.relid from pg_partition_tree(relation) p);
    wanted constant text[] := case when definition.safety = 'sequence' then array[definition.id_column]
                                   else array[definition.timestamp_column, definition.id_column] end;
    id constant pg_attribute := (select a from pg_attribute a
                                 where a.attrelid = relation and a.attname = definition.id_column);
    -- The same rule as in tidemark.source_shape: text of a collation other than these, or other than the database's
    -- own, is compared in "C" (950).
    in_c constant boolean := id.attcollation not in (0, 950, 951) and not (id.attcollation = 100 and exists (
        select from pg_database d where d.datname = current_database() and d.datcollate in ('C', 'POSIX')
                                    and d.datlocprovider = 'c'));
    columns text;
    found_ record;
    estimate double precision;
    other text;
begin
    if definition.safety = 'capture' then
        return;
    end if;
    columns := (
        select string_agg(
            format('%I', w.name) || case when in_c and w.name = definition.id_column then ' collate "C"' else '' end,
            ', ' order by w.n)
        from unnest(wanted) with ordinality w (name, n));
    "check" := 'index'; hint := '';
    with candidate as (
        select i.indexrelid::regclass as index, i.indisvalid and i.indisready as valid,
               array(select a.attname::text
                     from unnest((i.indkey::int2[])[0 : cardinality(wanted) - 1]) with ordinality k (attnum, n)
                     join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
                     order by k.n) = wanted as fits,
               (i.indcollation::oid[])[cardinality(wanted) - 1]
                   = case when in_c then 950 else id.attcollation end as collated,
               (i.indoption::int2[]::integer[])[0 : cardinality(wanted) - 1]
                   in (array[0, 0], array[3, 3], array[0], array[3]) as ordered,
               i.indpred is null as whole
        from pg_index i join pg_class c on c.oid = i.indexrelid join pg_am m on m.oid = c.relam
        where i.indrelid = relation and m.amname = 'btree' and i.indnkeyatts >= cardinality(wanted))
    select k.* into found_ from candidate k where k.fits
    order by k.valid and k.collated and k.ordered and k.whole desc, k.collated desc, k.whole desc, k.index::text
    limit 1;
    if found_.valid and found_.collated and found_.ordered and found_.whole then
        status := 'ok'; detail := found_.index::text;
        return next;
        return;
    end if;

    -- The table was never analyzed: estimate by its size, 100 bytes a row.
    estimate := (select sum(case when c.reltuples >= 0 then c.reltuples else pg_relation_size(c.oid) / 100 end)
                 from pg_class c where c.oid = any (parts) and c.relkind = 'r');
    status := case when estimate > 100000 then 'fail' else 'warn' end;
    other := case
        when found_.index is null then ''
        when not found_.collated then format('; %s is of another collation', found_.index)
        when not found_.whole then format('; %s is only of some rows', found_.index)
        when not found_.ordered then format('; %s is of mixed order', found_.index)
        else format('; %s is invalid', found_.index) end;
    detail := format('no index on (%s)%s: every page reads the whole table, of about %s rows', columns, other,
                     round(estimate));
    hint := case
        when found_.collated and found_.whole and found_.ordered and cardinality(parts) = 1
             then format('reindex index concurrently %s;', found_.index)
        when cardinality(parts) > 1
             then format('create index on only %1$s (%2$s); then for each partition create index concurrently on … '
                         '(%2$s); and alter index … attach partition …;', name, columns)
        else format('create index concurrently on %s (%s);', name, columns) end;
    return next;
end
$$;
comment on function tidemark.source_check_index(tidemark.source, oid) is
    'Part of tidemark.source_check: the index by which pages are read, with the statement that creates it. A missing '
    'index is warn for a small table, and fail above about 100,000 rows.';
grant execute on function tidemark.source_check_index(tidemark.source, oid) to tidemark_reader, tidemark_executor;
