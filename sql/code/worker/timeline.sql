-- Inlined by its callers, so it has no search_path.
create or replace function tidemark.timeline()
returns text
language sql stable
as $$
    select pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 8)
$$;
comment on function tidemark.timeline() is
    'The timeline that the server writes: another one after a standby was promoted, or a backup restored, and what the '
    'former primary did last may be missing.';
grant execute on function tidemark.timeline() to tidemark_executor;
