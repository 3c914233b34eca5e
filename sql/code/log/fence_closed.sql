create or replace function tidemark.fence_closed(fence text[], relation regclass default 'tidemark.outbox')
returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    return not exists (
        select from pg_locks l
        where l.locktype = 'relation' and l.granted
          and l.database = (select d.oid from pg_database d where d.datname = current_database())
          and l.relation = any (tidemark.relation_tree(fence_closed.relation))
          and l.mode = 'RowExclusiveLock'
          -- A prepared transaction has no pid, and another virtual id after a restart of the server: it
          -- cannot be told apart, so any that holds the lock keeps every fence open.
          and (l.virtualtransaction = any (fence) or l.pid is null));
end
$$;
comment on function tidemark.fence_closed(text[], regclass) is
    'True when no member of the fence, and no prepared transaction, holds the lock of the table (default: the log) '
    'any more: what they wrote is visible to the next statement, or was rolled back.';
