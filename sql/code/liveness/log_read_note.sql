create or replace function tidemark.log_read_note()
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    moment constant timestamptz := clock_timestamp();
    -- A look comes every 10 seconds. An old note makes the lag of a late commit look longer, but not so long that it
    -- warns.
    pause constant interval := least(interval '25 seconds', tidemark.interval_setting('lag.warn', '1 minute') / 2);
begin
    insert into tidemark.source_unread as u (worker, source, shard, noted_at, unread)
    select c.worker, c.source, c.shard, moment, false
    from tidemark.worker_cursor c left join tidemark.source d on d.source = c.source
    where case when c.source = 'outbox' or d.safety = 'capture'
               then c.watermark_id::bigint >= (select coalesce(max(o.seq), 0) from tidemark.outbox o) end
    order by 1, 2, 3
    on conflict (worker, source, shard) do update set noted_at = excluded.noted_at, unread = false
    where u.noted_at < excluded.noted_at - pause;
end
$$;
comment on function tidemark.log_read_note() is
    'Notes which cursors of the log have read all that is committed. What such a cursor has not read later was '
    'committed later, however old it is: a transaction may emit for hours. A note is renewed after 25 seconds, or half '
    'the setting lag.warn if that is less.';
