-- public
create or replace function tidemark.lock_blame(relation regclass default null)
returns text
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
    with held as (
        select l.pid, l.virtualtransaction from pg_locks l
        where l.locktype = 'relation' and l.granted and l.pid is distinct from pg_backend_pid()
          and l.database = (select d.oid from pg_database d where d.datname = current_database())
          and l.relation in (select unnest(tidemark.relation_tree(lock_blame.relation)))
          and l.mode not in ('AccessShareLock', 'RowShareLock')
    ), blocker (pid) as (
        select h.pid from held h
        union
        -- Do not use wait_event_type: without pg_read_all_stats it is hidden for other roles' sessions.
        select unnest(pg_blocking_pids(a.pid)) from pg_stat_activity a
        where lock_blame.relation is null and a.datname = current_database()
          and a.pid in (select l.pid from pg_locks l where not l.granted)
    )
    select string_agg(b.who, '; ' order by b.since nulls last) from (
        select format('pid %s, application "%s", user %s, in its transaction for %s', a.pid, a.application_name,
                      a.usename,
                      coalesce(date_trunc('second', clock_timestamp() - a.xact_start)::text, 'unknown')) as who,
               a.xact_start as since
        from pg_stat_activity a where a.pid in (select k.pid from blocker k)
        union all
        select format('prepared transaction "%s" of %s, for %s', p.gid, p.owner,
                      date_trunc('second', clock_timestamp() - p.prepared)), p.prepared
        from pg_prepared_xacts p
        where p.database = current_database()
          and (exists (select from held h join pg_locks own on own.virtualtransaction = h.virtualtransaction
                       where h.pid is null and own.pid is null and own.locktype = 'transactionid'
                         and own.transactionid = p.transaction)
               or exists (select from blocker k where k.pid = 0)) -- pg_blocking_pids shows each of them as 0
        order by 2 nulls last limit 5) b
$$;
comment on function tidemark.lock_blame(regclass) is
    'The five oldest transactions whose locks on the table prevent a trigger from being put on it: sessions with pid, '
    'application, user and age, prepared transactions with their gid. Without a table: those that make sessions of '
    'this database wait for locks. Null: none.';
grant execute on function tidemark.lock_blame(regclass) to tidemark_admin;
