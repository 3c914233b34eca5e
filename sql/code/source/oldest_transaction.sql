-- The transactions that a reader by time must stay behind, for tidemark.source_horizon and tidemark.poll. They read
-- the data in a later statement. docs/sources.md lists what was tried against it.
create or replace function tidemark.oldest_transaction()
returns tidemark.activity
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    -- Before the activity: a transaction that begins after this has a later now().
    clock constant timestamptz := clock_timestamp();
    activity tidemark.activity;
begin
    perform pg_stat_clear_snapshot();
    -- The caller's own transaction counts too: its handler may write to a source.
    with seen as materialized (
        select a.pid, a.application_name, a.usename, a.xact_start,
               -- Shown without its start: track_activities was off when its transaction began.
               -- Not by the text alone, which any session can send as its query.
               a.query = '<insufficient privilege>'
                   and not (pg_has_role('pg_read_all_stats', 'usage') or pg_has_role(a.usesysid, 'usage'))
                   or a.state = 'disabled'
                   -- The same is shown of a transaction that is over after an error, or in the end of a session: these
                   -- have not even their own lock any more.
                   or a.state like 'idle in transaction%' and a.xact_start is null and exists (
                       select from pg_locks l
                       where l.locktype = 'virtualxid' and l.pid = a.pid and l.mode = 'ExclusiveLock')
                   as hidden,
               case
                   when a.xact_start is not null then a.xact_start
                   -- Either it began a moment ago, or as above: nothing can be said.
                   when a.backend_xid is not null then '-infinity'
                   -- Between two transactions of one message: now() of each is the arrival of the message.
                   when a.state in ('active', 'fastpath function call') then a.query_start
                   -- A login trigger is still to come, and may write.
                   when a.state is null and a.backend_type = 'client backend' then a.backend_start end as since
        from pg_stat_activity a
        where a.datname = current_database() and a.backend_type is distinct from 'autovacuum worker'
          -- A replication command writes nothing, and lasts for days. No SQL command has an underscore in its first
          -- word.
          and not (a.backend_type = 'walsender' and a.query ~ '^\s*[A-Z]+_'))
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
    'oldest: no transaction of this database that is under way, or is still to come, has an earlier now(), but for '
    'one that the server does not show yet: callers leave a margin. Null: the start of one is not shown. hidden: '
    'sessions cannot be seen, so oldest says nothing. blame: who keeps oldest back by more than 10 s.';
grant execute on function tidemark.oldest_transaction() to tidemark_executor;
