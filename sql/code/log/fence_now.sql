create or replace function tidemark.fence_now(relation regclass default 'tidemark.outbox')
returns text[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    return (select coalesce(array_agg(distinct l.virtualtransaction), '{}') from pg_locks l
    where l.locktype = 'relation' and l.granted
      and l.database = (select d.oid from pg_database d where d.datname = current_database())
      and l.relation in (select unnest(tidemark.relation_tree(fence_now.relation)))
      -- Take only writers: the modes of autovacuum and DDL would keep holes open without need.
      and l.mode = 'RowExclusiveLock');
end
$$;
comment on function tidemark.fence_now(regclass) is
    'Virtual transaction ids of all transactions that hold RowExclusiveLock on the table (default: the log) or on a '
    'part of it: each may own a number that is not visible yet.';
