-- Reads no table of Tidemark: it must see who has locked them.
create or replace function tidemark.cause_locks()
returns setof tidemark.trouble
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    clock constant timestamptz := clock_timestamp();
    -- Upkeep and upgrades lock tables for a moment.
    patience constant interval := '5 seconds';
begin
    return query
    select 'tables_locked', o.subject, s.status, o.since,
           concat(o.who, ', has locked ', o.locked, ' for ' || date_trunc('second', clock - o.since),
                  case when o.idle then ', and is idle in its transaction' end,
                  case when o.began is null then '; its times are not shown to tidemark_owner' end),
           null::bigint, '{}'::text[],
           case when s.status = 'bad' then array[o.sql]
                when o.began is null then '{grant pg_read_all_stats to tidemark_owner;}' else '{}' end,
           '{}'::text[]
    from tidemark.lock_holders('', '{ShareLock,ShareRowExclusiveLock,ExclusiveLock,AccessExclusiveLock}') o
    cross join lateral (
        select case when o.since < clock - patience then 'bad' else 'unknown' end as status) s;
end
$$;
comment on function tidemark.cause_locks() is
    'The part of tidemark.cause about transactions that have locked tables of Tidemark against writers or readers: '
    'tables_locked. bad: for 5 seconds or more. unknown: for less, or the server does not show for how long; these are '
    'causes only for a look that a lock keeps from all else (tidemark.cause_seen).';
grant execute on function tidemark.cause_locks() to tidemark_reader, tidemark_executor;
