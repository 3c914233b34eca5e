create or replace function tidemark.capture_fingerprint(relation oid)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select md5(concat(
        (select string_agg(concat_ws(' ', a.attnum, a.atttypid, a.attgenerated, a.attname), ',' order by a.attnum)
         from pg_attribute a where a.attrelid = relation and a.attnum > 0 and not a.attisdropped),
        ';',
        (select concat_ws(' ', i.indkey, i.indnkeyatts) from pg_index i
         where i.indrelid = relation and i.indisprimary)))
$$;
comment on function tidemark.capture_fingerprint(oid) is
    'A fingerprint of the properties of a table that tidemark.capture_columns reads: its columns and its primary key.';
grant execute on function tidemark.capture_fingerprint(oid) to tidemark_reader;
