-- Inlined by its callers, so it has no search_path. Volatile, as pg_current_wal_insert_lsn is.
create or replace function tidemark.timeline()
returns text
language sql volatile
as $$
    select tidemark.system_identifier() || '/'
        || pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 8)
$$;
comment on function tidemark.timeline() is
    'The cluster, and the timeline that it writes: another one after a standby was promoted, a backup was restored to '
    'a point in time, or a dump into another cluster. What the server before it did last may be missing.';
grant execute on function tidemark.timeline() to tidemark_executor;
