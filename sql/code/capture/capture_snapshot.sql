-- A snapshot lists transactions, and no savepoints: by pg_visible_in_snapshot a row that was written in a savepoint is
-- visible before its transaction has ended. pg_xact_status knows savepoints, and takes 0.7 µs for each number.
create or replace function tidemark.capture_snapshot(since pg_snapshot default null)
returns pg_snapshot
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    -- First the snapshot, then which numbers are under way: one that ends in between is visible to the caller's next
    -- statement.
    now_ constant pg_snapshot := pg_current_snapshot();
    upto constant bigint := pg_snapshot_xmax(now_)::text::bigint;
    own constant bigint := pg_current_xact_id_if_assigned()::text::bigint;
    -- In the snapshot of the transaction nothing that ended since is visible.
    moves constant boolean := current_setting('transaction_isolation') like 'read %';
    begins constant bigint := greatest(pg_snapshot_xmin(now_)::text::bigint, upto - 1000000,
                                       case when moves then pg_snapshot_xmax(since)::text::bigint end);
    listed text;
begin
    select string_agg(x.id::text, ',' order by x.id) into listed
    from (select i.id::text::bigint as id from pg_snapshot_xip(now_) i (id)
          union
          select n.id
          from (select generate_series(begins, upto - 1) as id
                union all
                select i.id::text::bigint from pg_snapshot_xip(since) i (id)) n
          where n.id >= pg_snapshot_xmin(now_)::text::bigint and n.id < upto and n.id is distinct from own
            and (not moves or pg_xact_status(n.id::text::xid8) = 'in progress')) x;
    return format('%s:%s:%s', pg_snapshot_xmin(now_), upto, listed)::pg_snapshot;
end
$$;
comment on function tidemark.capture_snapshot(pg_snapshot) is
    'The current snapshot, with the savepoints of the transactions under way in its list, so that '
    'pg_visible_in_snapshot tells of their rows too. Asks for the numbers since a snapshot that this function returned '
    'before in the same transaction (since; null: all), at most for the last million. REPEATABLE READ and SERIALIZABLE '
    'list all of these numbers.';
grant execute on function tidemark.capture_snapshot(pg_snapshot) to tidemark_admin;
