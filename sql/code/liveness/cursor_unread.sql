-- How far a cursor of a table is behind. This is the only function that determines it: every display of a lag reads
-- tidemark.cursor_lag, which calls this. It is one lookup in the index by which the table is read.
--
-- Not a security definer: the table is read with the rights of the role that asks. That role may be a superuser, and
-- the table's owner must not run code through it. So the table is read as a pass reads it (tidemark.source_look,
-- tidemark.source_row).
create or replace function tidemark.cursor_unread(
    cursor tidemark.worker_cursor,
    out unread boolean,
    out since timestamptz,
    out looked boolean,
    out first_id bigint,
    out upto_id bigint,
    out upto_ts timestamptz)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
set lock_timeout = '20ms'
set row_security = off
as $$
#variable_conflict use_column
declare
    s constant tidemark.source := (select x from tidemark.source x where x.source = cursor.source);
    noted constant tidemark.source_unread := (
        select n from tidemark.source_unread n
        where n.worker = cursor.worker and n.source = cursor.source and n.shard = cursor.shard);
    clock constant timestamptz := clock_timestamp();
    time_ record;
    name text;
    rel regclass;
    got record;
    ahead boolean;
    late boolean;
begin
    looked := false;
    if cursor.source like 'kafka:%' then
        -- As the last pass has seen it.
        unread := (cursor.last_run_summary ->> 'behind')::bigint > 0;
        since := case when unread then (cursor.last_run_summary ->> 'since')::timestamptz end;
        return;
    end if;
    if s.source is null or s.safety = 'capture' then
        return;
    end if;
    name := format('%I.%I', s.schema_name, s.table_name);
    begin
        rel := name::regclass;
        -- Read up to the clock, not to the horizon: rows that wait for a long transaction are unread too.
        got := tidemark.source_look(rel, tidemark.source_query(s, 1, 'forward', 'next'),
            coalesce(cursor.watermark_ts, '-infinity'), cursor.watermark_id, clock, 1,
            holes => cursor.holes + cursor.fenced);
        ahead := got.found_;
        since := got.at;
        first_id := got.pos;
        if ahead and s.safety = 'sequence' then
            got := tidemark.source_look(rel, format('select max(tidemark_row.%I)::bigint as id from %s', s.id_column,
                                                    tidemark.source_row(s)));
            upto_id := got.id;
        elsif ahead then
            time_ := tidemark.source_time(s);
            got := tidemark.source_look(rel, format(
                'select %4$s as at from %2$s where %1$s < ($1%3$s) order by %1$s desc limit 1',
                time_.stored, tidemark.source_row(s), time_.zone, time_.at), clock);
            upto_ts := got.at;
        end if;
        looked := true;
    exception
        when others or assert_failure then
            -- The role may not read the table, its owner has locked it, or it is gone: the worker's own pass reports
            -- it.
    end;

    if looked then
        unread := coalesce(ahead, false);
        if unread and not coalesce(isfinite(since), false) then
            since := clock;
            -- Some of the rows seen by then are still unread.
            if noted.unread and (first_id = noted.first_id
                                 or first_id > cursor.watermark_id::bigint and first_id <= noted.upto_id) then
                since := noted.since;
                upto_id := noted.upto_id;
            end if;
        end if;
    elsif noted.noted_at > clock - tidemark.interval_setting('lag.bad', '15 minutes') then
        late := coalesce(s.safety = 'sequence' and cursor.holes + cursor.fenced @> noted.first_id, false);
        unread := noted.unread and (late or coalesce(
            case s.safety when 'sequence' then cursor.watermark_id::bigint < noted.upto_id
                 else cursor.watermark_ts < noted.upto_ts end, true));
        if unread then
            since := case when late or s.timestamp_column is null then noted.since
                          else greatest(noted.since, cursor.watermark_ts) end;
        end if;
    end if;
end
$$;
comment on function tidemark.cursor_unread(tidemark.worker_cursor) is
    'Whether the table of a cursor has committed rows that the cursor has not read (unread; null: unknown), and the '
    'time of the first of them (since): its timestamp or, where the source has none, the time at which '
    'tidemark.maintain first saw rows up to upto_id unread. Rows that a filter or another shard will skip count until '
    'the cursor has passed them. Rows of the future do not count, nor rows that only a sweep finds (late rows behind a '
    'watermark, rows without a timestamp). looked false: the role may not read the table, or it is locked or gone; the '
    'result is then maintain''s last note, unless that is older than the setting lag.bad. Of a partition of Kafka: as '
    'its last pass has seen it. All null for the log and for captured tables, which tidemark.cursor_lag looks up in '
    'the log.';
grant execute on function tidemark.cursor_unread(tidemark.worker_cursor) to tidemark_reader, tidemark_executor;
