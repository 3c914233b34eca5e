create or replace function tidemark.open_transactions()
returns table (
    pid integer,
    gid text,
    who text,
    since timestamptz,
    idle boolean,
    hidden boolean,
    fence text,
    relations oid[],
    waiters bigint)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    clock constant timestamptz := clock_timestamp();
    patience constant interval := '20 seconds';
    database constant oid := (select d.oid from pg_database d where d.datname = current_database());
    sees constant boolean := pg_has_role('pg_read_all_stats', 'usage');
begin
    return query
    with writer as materialized (
        select l.pid, l.virtualtransaction as fence, array_agg(distinct l.relation) as relations
        from pg_locks l
        where l.locktype = 'relation' and l.granted and l.mode = 'RowExclusiveLock' and l.database = database
        group by 1, 2
    ), blocked as materialized (
        select b.pid, count(*) as waiters
        from (select distinct l.pid from pg_locks l where not l.granted and l.pid <> pg_backend_pid()) w
        cross join lateral (select distinct k.pid from unnest(pg_blocking_pids(w.pid)) k (pid)) b
        group by 1
    )
    select a.pid, null, format('pid %s, application "%s", user %s%s', a.pid, a.application_name, a.usename,
                               case when a.xact_start is not null
                                    then ', client ' || coalesce(host(a.client_addr), 'on this host') end),
           a.xact_start, coalesce(a.state like 'idle in transaction%', false), a.xact_start is null,
           w.fence, coalesce(w.relations, '{}'), coalesce(b.waiters, 0)
    from pg_stat_activity a
    left join writer w on w.pid = a.pid
    left join blocked b on b.pid = a.pid
    where a.datid = database and a.pid <> pg_backend_pid()
      -- What the sessions of others are is hidden without pg_read_all_stats.
      and (a.backend_type = 'client backend' or a.backend_type is null and a.usesysid is not null)
      and (a.state like 'idle in transaction%' and a.state_change < clock - patience
           -- One that works is an obstacle only when it takes very long.
           or a.xact_start < clock - tidemark.interval_setting('lag.bad', '15 minutes')
           or not sees and not pg_has_role(a.usesysid, 'usage') and w.pid is not null)
    union all
    select null, p.gid, format('prepared transaction "%s" of %s', p.gid, p.owner), p.prepared, true, false, w.fence,
           coalesce(w.relations, '{}'), coalesce(b.waiters, 0)
    from pg_prepared_xacts p
    left join pg_locks t on t.pid is null and t.locktype = 'transactionid' and t.transactionid = p.transaction
    left join writer w on w.pid is null and w.fence = t.virtualtransaction
    -- pg_blocking_pids shows each of them as 0.
    left join blocked b on b.pid = 0
    where p.database = current_database() and p.prepared < clock - patience;
end
$$;
comment on function tidemark.open_transactions() is
    'Transactions that are idle for 20 s, that last longer than the setting lag.bad, or are prepared and not ended for '
    '20 s. who: the session (pid, application, user, client) or the prepared transaction (gid, owner). fence: its '
    'virtual transaction id. relations: the tables that it has written. waiters: sessions that wait for its locks. '
    'hidden: a session that writes, and whose times the server does not show to tidemark_owner.';
grant execute on function tidemark.open_transactions() to tidemark_reader, tidemark_executor;
