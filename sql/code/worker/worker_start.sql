-- Where a new cursor of the log begins. It leaves out all events committed before, and includes all that commit from
-- now on, even with a number below the mark that their writer took earlier. The order of the statements is that of
-- tidemark.read_outbox: the mark, then the visible events below it, then the fence of the writers that may own the
-- rest.
create or replace function tidemark.worker_start(starts text)
returns tidemark.worker_cursor
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    last_number bigint;
    place bigint;
    since timestamptz;
    known tidemark.worker_cursor;
    low bigint;
    c tidemark.worker_cursor;
begin
    last_number := (select q.last_value - (not q.is_called)::integer from tidemark.outbox_seq_seq q);
    if starts = 'start' then
        place := 0;
    elsif starts = 'now' then
        place := last_number;
    elsif starts ~ '^[0-9]{1,18}$' then
        place := greatest(starts::bigint - 1, 0);
        if place > last_number then
            raise exception using errcode = 'TM005',
                message = format('the log ends at number %s: a worker cannot begin at %s', last_number, starts),
                hint = 'now begins with the next event.';
        end if;
    else
        begin
            since := starts::timestamptz;
        exception when invalid_datetime_format or datetime_field_overflow then
            raise exception using errcode = 'TM005', message = format('a worker cannot begin at "%s"', starts),
                hint = 'now, start, the number of an event, or a time such as 2026-01-31T12:00:00Z.';
        end;
        -- Numbers and times do not rise in exactly the same order: take the lowest number of that time or later.
        place := coalesce(tidemark.seq_of_time(since) - 1, last_number);
    end if;

    c.watermark_id := place::text;
    c.decided_through := place::text;
    c.begins_after := place;
    c.holes := '{}';
    c.fenced := '{}';
    c.fence := '{}';
    if starts in ('now') or since is not null then
        if place > 0 and cardinality(tidemark.fence_now()) > 0 then
            -- A cursor of another worker knows the open numbers below its own watermark, so only the log above it must
            -- be read.
            select k.* into known from tidemark.worker_cursor k
            where k.source = 'outbox' and k.watermark_id::bigint <= place
            order by k.watermark_id::bigint desc limit 1;
            low := greatest(coalesce(known.watermark_id::bigint, 0),
                            (select min(p.first_seq) - 1 from tidemark.partitions('tidemark.outbox') p));
            c.fenced := int8multirange(int8range(low + 1, place + 1)) + coalesce(known.holes + known.fenced, '{}')
                - coalesce((
                    select range_agg(int8range(o.seq, o.seq + 1)) from tidemark.outbox o
                    where o.seq > low and o.seq <= place), '{}')
                - coalesce((
                    select range_agg(int8range(o.seq, o.seq + 1))
                    from unnest(known.holes + known.fenced) h (span)
                    join tidemark.outbox o on o.seq >= lower(h.span) and o.seq < upper(h.span)), '{}');
        end if;
        if not isempty(c.fenced) then
            c.fence := tidemark.fence_now();
        end if;
    end if;
    return c;
end
$$;
comment on function tidemark.worker_start(text) is
    'Where a cursor of the log that is created now begins, in its columns watermark_id, decided_through, begins_after, '
    'fenced and fence. starts: now, start, the number of the first event to read, or a time: the first event of that '
    'time or later. Raises TM005.';
