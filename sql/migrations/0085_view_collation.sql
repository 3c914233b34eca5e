-- Some builds before the first release made tidemark.capture_watched with another collation, and create or replace cannot change it. It and what
-- reads it are made again with all other views.

set local role tidemark_owner;

do $$
begin
    if exists (
        select from pg_catalog.pg_attribute a join pg_catalog.pg_collation l on l.oid = a.attcollation
        where a.attrelid = pg_catalog.to_regclass('tidemark.capture_watched') and a.attname = 'name'
          and l.collname <> 'default')
    then
        drop view tidemark.capture_watched cascade;
    end if;
end
$$;
