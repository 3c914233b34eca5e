create or replace function tidemark.capture_busy()
returns text[]
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(array_agg(l.virtualtransaction), '{}')
    from pg_locks l join pg_stat_activity a on a.pid = l.pid
    -- Autovacuum has no user; it captures nothing, and has committed nothing before.
    where l.locktype = 'virtualxid' and l.mode = 'ExclusiveLock' and l.pid <> pg_backend_pid()
      and a.datname = current_database() and a.usesysid is not null
$$;
comment on function tidemark.capture_busy() is
    'The virtual ids of the other transactions that are under way in this database, whose end a later step of '
    'tidemark.maintain waits for.';
