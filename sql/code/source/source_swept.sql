create or replace function tidemark.source_swept(
    plan tidemark.source_plan,
    page tidemark.source_page,
    cursor tidemark.worker_cursor,
    recount jsonb)
returns tidemark.worker_cursor
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    c tidemark.worker_cursor := cursor;
    s constant tidemark.source := plan.source;
    executor constant text := tidemark.executor_id(c.worker, c.source, c.shard);
    next constant text := case plan.sweep ->> 'segment' when 'null' then '-infinity' when '-infinity' then 'infinity'
                                                        when 'infinity' then 'window' end;
    wrong record;
begin
    c.sweep := plan.sweep;
    if page.examined >= plan.rows_limit then
        c.sweep := c.sweep || jsonb_build_object('id', page.last_id, 'ts', page.last_ts);
        return c;
    elsif next = 'window' and s.sweep_window is not null or next <> 'window' then
        c.sweep := c.sweep - 'id' - 'ts' || jsonb_build_object('segment', next);
        return c;
    end if;

    -- This whole sweep saw the rows of transactions below next_xmin: no later sweep reads them again.
    delete from tidemark.source_ledger l
    where l.worker_id = (plan.worker).id and l.source = s.source and l.shard = c.shard
      and l.xid < (plan.sweep ->> 'next_xmin')::xid8;
    c.sweep := jsonb_build_object('xmin', plan.sweep ->> 'next_xmin', 'segment_xmin', plan.sweep ->> 'next_xmin',
                                  'mark', plan.sweep ->> 'next_mark', 'done_at', clock_timestamp());
    if c.phase = 'reconciling' then
        c.phase := 'incremental';
    end if;
    if recount ? 'buckets' then
        c.metadata := c.metadata || jsonb_build_object('buckets', recount -> 'buckets');
    end if;
    if recount ? 'uncounted' then
        perform tidemark.finding_open('source_count_mismatch', executor, 'high', case
            when recount ->> 'uncounted' = '57014' then format(
                'rows behind sweep_window cannot be counted: a pass of %s has no time for those of %s from %s on. Set '
                'a longer page_timeout or a shorter bucket, and see that the table has an index on the timestamp',
                current_setting('statement_timeout')::interval, s.bucket,
                coalesce(c.verified_through::text, 'the first'))
            else format(
                'rows behind sweep_window cannot be counted: the filter of source %s fails for one of them (SQLSTATE '
                '%s). Write the filter so that it fails for none', s.source, recount ->> 'uncounted') end);
    elsif recount ? 'upto' then
        select b.at, b.there, b.handled into wrong
        from (
            select coalesce(k.bucket, r.at) as at, coalesce(r.there, 0) as there, coalesce(k.items, 0) as handled
            from (select t.key::timestamptz as at, t.value::bigint as there
                  from jsonb_each_text(recount -> 'counts') t) r
            full join (
                select k.bucket, k.items from tidemark.source_count k
                where k.worker_id = (plan.worker).id and k.source = s.source and k.shard = c.shard
                  and k.bucket >= (recount ->> 'from')::timestamptz and k.bucket < (recount ->> 'upto')::timestamptz) k
            on k.bucket = r.at) b
        where b.there > b.handled
        order by b.at limit 1;
        if found then
            perform tidemark.finding_open('source_count_mismatch', executor, 'high', format(
                'from %s on for %s the table has %s rows, but %s were handled: rows appeared later than sweep_window '
                'allows. To handle them, rewind to that time with tidemark.source_rewind', wrong.at, s.bucket,
                wrong.there, wrong.handled));
            c.verified_through := wrong.at;
        else
            perform tidemark.finding_close('source_count_mismatch', executor);
            c.verified_through := (recount ->> 'upto')::timestamptz;
        end if;
        delete from tidemark.source_count k
        where k.worker_id = (plan.worker).id and k.source = s.source and k.shard = c.shard
          and k.bucket < c.verified_through;
    end if;
    return c;
end
$$;
comment on function tidemark.source_swept(tidemark.source_plan, tidemark.source_page, tidemark.worker_cursor, jsonb) is
    'The cursor after a page of a sweep. At the end of the sweep it prunes the ledger, and moves verified_through up '
    'to the first bucket in which the table has more rows than were handled.';
