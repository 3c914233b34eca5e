-- A row of the safety clock carries the server's time of its transaction's start or a later one. So all rows are
-- complete that are older than the oldest transaction under way and than the clock before the search for it:
--
-- 1. Read the clock first, then the activity (tidemark.oldest_transaction). A transaction that begins after that
--    writes a later time. The server shows a transaction a moment after it took its time: the margin covers this.
-- 2. Read the data in a later statement. Its snapshot has every transaction that ended before step 1. If one
--    statement does both, a transaction that ends in between is in neither: one row in a hundred was lost in a
--    measurement.
-- 3. The activity does not list a prepared transaction, but pg_locks lists its locks. While one holds the table,
--    no horizon is safe.
-- 4. A hidden transaction is not an absent one: where others' transactions are hidden (a right is missing, or
--    track_activities is off), no horizon is safe.
create or replace function tidemark.source_horizon(
    definition tidemark.source,
    relation regclass,
    activity tidemark.activity default null,
    out horizon timestamptz,
    out held text,
    out hidden text,
    out blame text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    clock constant timestamptz := clock_timestamp();
    digits constant integer := coalesce(substring(definition.timestamp_type from E'\\(([0-6])\\)')::integer, 6);
    margin constant interval := greatest(definition.margin, make_interval(secs => (10 ^ -digits)::double precision));
    seen tidemark.activity := source_horizon.activity;
begin
    if definition.safety = 'declared' then
        horizon := clock - margin;
        return;
    end if;
    if seen is null then
        seen := tidemark.oldest_transaction();
    end if;
    if seen.hidden then
        hidden := 'the transactions of other sessions cannot be seen';
        return;
    end if;
    blame := seen.blame;
    if exists (select from pg_prepared_xact()) and exists (
        select from pg_locks l
        where l.pid is null and l.locktype = 'relation' and l.mode = 'RowExclusiveLock'
          and l.database = (select d.oid from pg_database d where d.datname = current_database())
          and l.relation in (select unnest(tidemark.relation_tree(source_horizon.relation))))
    then
        held := coalesce((
            select string_agg(format('prepared transaction "%s" of %s, for %s', p.gid, p.owner,
                                     date_trunc('second', clock - p.prepared)), '; ')
            from pg_prepared_xacts p where p.database = current_database()), 'a prepared transaction');
    end if;
    horizon := seen.oldest - margin;
end
$$;
comment on function tidemark.source_horizon(tidemark.source, regclass, tidemark.activity) is
    'The time (exclusive) up to which the rows of a source are complete for later statements: the clock or the start '
    'of the oldest transaction of this database, less the margin. blame: the transaction that keeps it back by more '
    'than 10 s. held: a prepared transaction that holds the table. hidden: the caller cannot see other sessions'' '
    'transactions. For the safety declared it is the clock less the margin. activity: an earlier result of '
    'tidemark.oldest_transaction (null: it is asked now).';
grant execute on function tidemark.source_horizon(tidemark.source, regclass, tidemark.activity) to tidemark_executor;
