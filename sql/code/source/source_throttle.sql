create or replace function tidemark.source_throttle(worker tidemark.worker, cursor tidemark.worker_cursor)
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    now_ constant timestamptz := clock_timestamp();
    at time;
    from_ time;
    to_ time;
    waiting bigint;
    lag interval;
begin
    if worker.storm_fraction is not null and (cursor.metadata ->> 'storm_until')::timestamptz > now_ then
        return 'after a storm of changes, until '
               || date_trunc('second', (cursor.metadata ->> 'storm_until')::timestamptz);
    end if;
    if worker.off_peak is not null and cursor.last_run_at > now_ - worker.peak_pause then
        at := (now_ at time zone split_part(worker.off_peak, ' ', 2))::time;
        from_ := split_part(split_part(worker.off_peak, ' ', 1), '-', 1)::time;
        to_ := split_part(split_part(worker.off_peak, ' ', 1), '-', 2)::time;
        if not (case when from_ <= to_ then at >= from_ and at < to_ else at >= from_ or at < to_ end) then
            return format('outside of %s it rests for %s between two passes', worker.off_peak, worker.peak_pause);
        end if;
    end if;
    if worker.lock_wait_limit is not null then
        -- Do not use wait_event_type: without pg_read_all_stats it is hidden for other roles' sessions.
        perform pg_stat_clear_snapshot();
        select count(distinct l.pid) into waiting from pg_locks l join pg_stat_activity a on a.pid = l.pid
        where not l.granted and a.datname = current_database() and l.pid <> pg_backend_pid();
        if waiting > worker.lock_wait_limit then
            return format('%s sessions wait for locks, more than %s%s', waiting, worker.lock_wait_limit,
                          ', held by ' || tidemark.lock_blame());
        end if;
    end if;
    if worker.replication_lag_limit is not null then
        select max(r.replay_lag) into lag from pg_stat_replication r;
        if lag > worker.replication_lag_limit then
            return format('a standby is %s behind, more than %s', lag, worker.replication_lag_limit);
        end if;
    end if;
    return null;
end
$$;
comment on function tidemark.source_throttle(tidemark.worker, tidemark.worker_cursor) is
    'Why a worker of tables should wait now: a storm, its off-peak hours, locks that other sessions wait for, or '
    'standbys that are behind. Null: it need not wait.';
