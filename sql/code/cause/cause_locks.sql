-- Reads no table of Tidemark: it must see who has locked them.
create or replace function tidemark.cause_locks()
returns setof tidemark.trouble
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return query
    with held as materialized (
        select l.pid, l.virtualtransaction, string_agg(distinct c.relname, ', ') as tables
        from pg_locks l
        join pg_class c on c.oid = l.relation
        where l.locktype = 'relation' and l.granted and l.pid is distinct from pg_backend_pid()
          and l.database = (select d.oid from pg_database d where d.datname = current_database())
          and l.mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
          and c.relkind in ('r', 'p') and c.relnamespace = 'tidemark'::regnamespace
        group by 1, 2
    ), holder as (
        select 'pid ' || a.pid as subject, a.xact_start as since, h.tables,
               format('pid %s, application "%s", user %s, client %s', a.pid, a.application_name, a.usename,
                      coalesce(host(a.client_addr), 'on this host')) as who,
               case when a.state like 'idle in transaction%' then ', and is idle in its transaction' end as idle,
               format('select pg_terminate_backend(%s);', a.pid) as sql
        from held h join pg_stat_activity a on a.pid = h.pid
        union all
        select p.gid, p.prepared, h.tables, format('prepared transaction "%s" of %s', p.gid, p.owner), null,
               format('rollback prepared %L;', p.gid)
        from held h
        join pg_locks t on h.pid is null and t.pid is null and t.locktype = 'transactionid'
            and t.virtualtransaction = h.virtualtransaction
        join pg_prepared_xacts p on p.transaction = t.transactionid and p.database = current_database()
    )
    select 'tables_locked', o.subject, 'bad', o.since,
           format('%s, has locked %s for %s%s', o.who, o.tables, date_trunc('second', clock_timestamp() - o.since),
                  o.idle),
           null::bigint, '{}'::text[], array[o.sql], '{}'::text[]
    from holder o
    -- Upkeep and upgrades lock tables for a moment.
    where o.since < clock_timestamp() - interval '5 seconds';
end
$$;
comment on function tidemark.cause_locks() is
    'The part of tidemark.cause about transactions that have locked tables of Tidemark against writers or readers for '
    '5 seconds: tables_locked.';
grant execute on function tidemark.cause_locks() to tidemark_reader, tidemark_executor;
