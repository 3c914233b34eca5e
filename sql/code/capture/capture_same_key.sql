create or replace function tidemark.capture_same_key(relation regclass, key_json text)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    -- An event that does not name these columns (its payload was erased, a column was renamed since, or the application
    -- emitted it) has only the text.
    select case when count(*) > 1
                then format(' and (o.payload -> ''primary_key'' = %1$s '
                            'or (o.payload -> ''primary_key'' ?& %2$L::text[]) is not true)',
                            key_json, array_agg(a.attname::text))
                else '' end
    from pg_index i
    cross join unnest(i.indkey::int2[]) with ordinality k (attnum, ord)
    join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
    where i.indrelid = relation and i.indisprimary and k.ord <= i.indnkeyatts
$$;
comment on function tidemark.capture_same_key(regclass, text) is
    'SQL that, after the texts of the keys, compares the key of an event o with that of a row (key_json, of '
    'tidemark.capture_columns): keys of several columns may have the same text. Empty where the key has one column.';
grant execute on function tidemark.capture_same_key(regclass, text) to tidemark_admin;
