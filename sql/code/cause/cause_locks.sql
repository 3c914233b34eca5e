-- Reads no table of Tidemark: it must see who has locked them.
create or replace function tidemark.cause_locks()
returns setof tidemark.trouble
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return query
    select 'tables_locked', o.subject, 'bad', o.since,
           format('%s, has locked %s for %s%s', o.who, o.locked, date_trunc('second', clock_timestamp() - o.since),
                  case when o.idle then ', and is idle in its transaction' end),
           null::bigint, '{}'::text[], array[o.sql], '{}'::text[]
    from tidemark.lock_holders('', '{ShareLock,ShareRowExclusiveLock,ExclusiveLock,AccessExclusiveLock}') o
    -- Upkeep and upgrades lock tables for a moment.
    where o.since < clock_timestamp() - interval '5 seconds';
end
$$;
comment on function tidemark.cause_locks() is
    'The part of tidemark.cause about transactions that have locked tables of Tidemark against writers or readers for '
    '5 seconds: tables_locked.';
grant execute on function tidemark.cause_locks() to tidemark_reader, tidemark_executor;
