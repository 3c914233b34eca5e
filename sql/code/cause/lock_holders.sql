create or replace function tidemark.lock_holders(tables text, modes text[])
returns table (subject text, since timestamptz, who text, idle boolean, locked text, sql text)
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
    with held as materialized (
        select l.pid, l.virtualtransaction, string_agg(distinct c.relname, ', ') as locked
        from pg_locks l
        join pg_class c on c.oid = l.relation
        where l.locktype = 'relation' and l.granted and l.pid is distinct from pg_backend_pid()
          and l.database = (select d.oid from pg_database d where d.datname = current_database())
          and (lock_holders.modes is null or l.mode = any (lock_holders.modes))
          and c.relkind in ('r', 'p') and c.relnamespace = 'tidemark'::regnamespace and c.relname ~ lock_holders.tables
        group by 1, 2
    )
    select 'pid ' || a.pid, a.xact_start,
           format('pid %s, application "%s", user %s, client %s', a.pid, a.application_name, a.usename,
                  coalesce(host(a.client_addr), 'on this host')),
           coalesce(a.state like 'idle in transaction%', false), h.locked,
           format('select pg_terminate_backend(%s);', a.pid)
    from held h join pg_stat_activity a on a.pid = h.pid
    union all
    select p.gid, p.prepared, format('prepared transaction "%s" of %s', p.gid, p.owner), null, h.locked,
           format('rollback prepared %L;', p.gid)
    from held h
    join pg_locks t on h.pid is null and t.pid is null and t.locktype = 'transactionid'
        and t.virtualtransaction = h.virtualtransaction
    join pg_prepared_xacts p on p.transaction = t.transactionid and p.database = current_database()
$$;
comment on function tidemark.lock_holders(text, text[]) is
    'Transactions that have locked tables of Tidemark with such names, in one of these modes (null: in any, as readers '
    'have): sessions, and prepared ones (idle null). locked: the tables. sql ends it.';
