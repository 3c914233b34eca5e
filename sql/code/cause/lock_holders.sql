create or replace function tidemark.lock_holders(tables text, modes text[])
returns table (subject text, began timestamptz, since timestamptz, who text, idle boolean, locked text, sql text)
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
    with lock as materialized (
        select l.pid, l.virtualtransaction, l.relation, l.mode, l.granted, l.waitstart
        from pg_locks l
        where l.locktype = 'relation' and l.pid is distinct from pg_backend_pid()
          and l.database = (select d.oid from pg_database d where d.datname = current_database())
    ), held as materialized (
        select l.pid, l.virtualtransaction, string_agg(distinct c.relname, ', ') as locked,
               array_agg(distinct l.relation) as relations
        from lock l
        join pg_class c on c.oid = l.relation
        where l.granted and (lock_holders.modes is null or l.mode = any (lock_holders.modes))
          and c.relkind in ('r', 'p') and c.relnamespace = 'tidemark'::regnamespace and c.relname ~ lock_holders.tables
        group by 1, 2
    )
    -- The lock may be younger than its transaction. It is older than the session is idle, and than those have waited
    -- that it blocks, which the server shows to all roles.
    select 'pid ' || a.pid, a.xact_start, least(i.since, w.since),
           format('pid %s, application "%s", user %s%s', a.pid, a.application_name, a.usename,
                  case when a.xact_start is not null
                       then ', client ' || coalesce(host(a.client_addr), 'on this host') end),
           i.since is not null, h.locked, format('select pg_terminate_backend(%s);', a.pid)
    from held h join pg_stat_activity a on a.pid = h.pid
    cross join lateral (select case when a.state like 'idle in transaction%' then a.state_change end as since) i
    cross join lateral (
        select min(l.waitstart) as since from lock l
        where not l.granted and l.relation = any (h.relations) and h.pid = any (pg_blocking_pids(l.pid))) w
    union all
    select p.gid, p.prepared, p.prepared, format('prepared transaction "%s" of %s', p.gid, p.owner), null, h.locked,
           format('rollback prepared %L;', p.gid)
    from held h
    join pg_locks t on h.pid is null and t.pid is null and t.locktype = 'transactionid'
        and t.virtualtransaction = h.virtualtransaction
    join pg_prepared_xacts p on p.transaction = t.transactionid and p.database = current_database()
$$;
comment on function tidemark.lock_holders(text, text[]) is
    'Transactions that have locked tables of Tidemark with such names, in one of these modes (null: in any, as readers '
    'have): sessions, and prepared ones (idle null). locked: the tables. began: the transaction; null: the server does '
    'not show it to the owner. since: the lock is at least as old; null: not known. sql ends it.';
