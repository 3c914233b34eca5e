create or replace function tidemark.fence_blame(fence text[], relation regclass default 'tidemark.outbox')
returns text
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
    select string_agg(b.who, '; ' order by b.since nulls last) from (
        select format('pid %s, application "%s", user %s, in its transaction for %s', a.pid, a.application_name,
                      a.usename,
                      coalesce(date_trunc('second', clock_timestamp() - a.xact_start)::text, 'unknown')) as who,
               a.xact_start as since
        from pg_locks l join pg_stat_activity a on a.pid = l.pid
        where l.locktype = 'relation' and l.granted
          and l.relation in (select unnest(tidemark.relation_tree(fence_blame.relation)))
          and l.database = a.datid and a.datname = current_database()
          and l.mode = 'RowExclusiveLock' and l.virtualtransaction = any (fence)
        union all
        select format('prepared transaction "%s" of %s, for %s', p.gid, p.owner,
                      date_trunc('second', clock_timestamp() - p.prepared)), p.prepared
        from pg_prepared_xacts p
        where p.database = current_database()
        order by 2 nulls last limit 5) b
$$;
comment on function tidemark.fence_blame(text[], regclass) is
    'The five oldest transactions that keep the fence from closing: sessions with pid, application, user and age, '
    'prepared transactions with their gid. Null: none is left.';
