-- Not a security definer, like tidemark.cursor_unread.
create or replace function tidemark.cursor_waiting(cursor tidemark.worker_cursor)
returns bigint
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
    most constant integer := 10000;
    s constant tidemark.source := (select x from tidemark.source x where x.source = cursor.source);
    rel regclass;
    got record;
begin
    if cursor.source = 'outbox' or s.safety = 'capture' then
        return (select count(*) from (select from tidemark.outbox o where o.seq > cursor.watermark_id::bigint
                                      order by o.seq limit most) o);
    elsif cursor.source like 'kafka:%' then
        return least((cursor.last_run_summary ->> 'behind')::bigint, most); -- as the last pass has seen it
    end if;
    rel := format('%I.%I', s.schema_name, s.table_name)::regclass;
    got := tidemark.source_look(rel, format('select count(*) as n from (%s) unread',
                                            tidemark.source_query(s, 1, 'forward', 'next')),
        coalesce(cursor.watermark_ts, '-infinity'), cursor.watermark_id, clock_timestamp(), most,
        holes => cursor.holes + cursor.fenced);
    return got.n;
exception when others or assert_failure then
    return null; -- as in tidemark.cursor_unread
end
$$;
comment on function tidemark.cursor_waiting(tidemark.worker_cursor) is
    'How many committed events, rows or records a cursor has not read, as tidemark.cursor_unread sees them, counted up '
    'to 10000. Null: this role may not read the table, or it is locked or gone.';
grant execute on function tidemark.cursor_waiting(tidemark.worker_cursor) to tidemark_reader, tidemark_executor;
