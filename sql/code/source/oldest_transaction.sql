-- Finds the transactions that a reader by time must stay behind, for tidemark.source_horizon and tidemark.poll, which
-- read the data in a later statement. docs/sources.md lists the attempts to break this.
create or replace function tidemark.oldest_transaction()
returns tidemark.activity
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    -- Read the clock before the activity: a transaction that begins after this line has a later now().
    clock constant timestamptz := clock_timestamp();
    activity tidemark.activity;
begin
    perform pg_stat_clear_snapshot();
    -- The caller's own transaction counts too: its handler may write to a source.
    with seen as materialized (
        select a.pid, a.application_name, a.usename, a.xact_start,
               -- Hidden: the server shows no start, since track_activities was off when the transaction began. The text
               -- alone does not prove it: any session can send that text as its query.
               a.query = '<insufficient privilege>'
                   and not (pg_has_role('pg_read_all_stats', 'usage') or pg_has_role(a.usesysid, 'usage'))
                   or a.state = 'disabled'
                   -- The server shows the same of a transaction that ended with an error and of a session that is
                   -- ending. Those no longer hold the lock on their own virtual transaction id.
                   or a.state like 'idle in transaction%' and a.xact_start is null and exists (
                       select from pg_locks l
                       where l.locktype = 'virtualxid' and l.pid = a.pid and l.mode = 'ExclusiveLock')
                   as hidden,
               case
                   when a.xact_start is not null then a.xact_start
                   -- The transaction began a moment ago, or its start is hidden as above: the horizon is unknown.
                   when a.backend_xid is not null then '-infinity'
                   -- The session is between two transactions of one message: now() of each is the arrival of the
                   -- message.
                   when a.state in ('active', 'fastpath function call') then a.query_start
                   -- A login trigger has yet to run, and may write.
                   when a.state is null and a.backend_type = 'client backend' then a.backend_start end as since
        from pg_stat_activity a
        where a.datname = current_database() and a.backend_type is distinct from 'autovacuum worker'
          -- A replication command writes nothing, and lasts for days. No SQL command has an underscore in its first
          -- word.
          and not (a.backend_type = 'walsender' and a.query ~ E'^\\s*[A-Z]+_'))
    select nullif(least(clock, min(s.since)), '-infinity'), coalesce(bool_or(s.hidden), false),
           (array_agg(format('pid %s, application "%s", user %s, in its %s for %s', s.pid, s.application_name,
                             s.usename, case when s.xact_start is null then 'message' else 'transaction' end,
                             coalesce(date_trunc('second', clock - nullif(s.since, '-infinity'))::text,
                                      'a time that is not shown'))
                      order by s.since) filter (where s.since < clock - interval '10 seconds'))[1]
    into activity.oldest, activity.hidden, activity.blame
    from seen s;
    return activity;
end
$$;
comment on function tidemark.oldest_transaction() is
    'oldest: every transaction of this database that is under way, or still to come, has this now() or a later one. A '
    'transaction that the server does not show yet is the exception: callers leave a margin for it. Null: the start of '
    'a transaction is not shown. hidden: the caller cannot see other sessions, so oldest means nothing. blame: the '
    'transaction that keeps oldest back by more than 10 s.';
grant execute on function tidemark.oldest_transaction() to tidemark_executor;
