create or replace function tidemark.capture_rest(relation regclass, key_json text)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    -- The primary key of a partitioned table has all columns of the partitions, so each row that moves has another one.
    select format('(%s - %L::text[])', key_json, coalesce(array_agg(distinct a.attname::text), '{}'))
    from pg_partition_tree(relation) t
    join pg_partitioned_table p on p.partrelid = t.relid
    cross join unnest(p.partattrs::int2[]) k (attnum)
    join pg_attribute a on a.attrelid = t.relid and a.attnum = k.attnum
$$;
comment on function tidemark.capture_rest(regclass, text) is
    'SQL over a row n: its primary key (key_json, of tidemark.capture_columns) without the columns that say in which '
    'partition the row is.';
grant execute on function tidemark.capture_rest(regclass, text) to tidemark_reader;
