create or replace function tidemark.fence_now()
returns text[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    return (select coalesce(array_agg(distinct l.virtualtransaction), '{}') from pg_locks l
    where l.locktype = 'relation' and l.granted
      and l.database = (select d.oid from pg_database d where d.datname = current_database())
      and l.relation = 'tidemark.outbox'::regclass
      -- Only writers: autovacuum's and DDL's modes would keep holes open for nothing.
      and l.mode = 'RowExclusiveLock');
end
$$;
comment on function tidemark.fence_now() is 'Virtual transaction ids of everyone who holds RowExclusiveLock on the log, and so may own a number that is not visible yet.';
revoke all on function tidemark.fence_now() from public;
