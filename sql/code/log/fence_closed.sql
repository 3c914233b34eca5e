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
          and l.relation in (select unnest(tidemark.relation_tree(fence_closed.relation)))
          and l.mode = 'RowExclusiveLock'
          -- A prepared transaction has no pid, and gets another virtual id when the server restarts. It cannot be
          -- identified, so any that holds the lock keeps every fence open.
          and (l.virtualtransaction = any (fence) or l.pid is null));
end
$$;
comment on function tidemark.fence_closed(text[], regclass) is
    'True when no member of the fence, and no prepared transaction, still holds the lock of the table (default: the '
    'log): the next statement sees all that they committed; the rest was rolled back.';
