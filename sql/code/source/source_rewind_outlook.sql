-- public
-- Not a security definer: the table is read with the rights of the caller.
create or replace function tidemark.source_rewind_outlook(
    worker text,
    source text,
    to_ts timestamptz default null,
    to_id text default null)
returns table (
    shard integer, watermark_ts timestamptz, watermark_id text, "rows" bigint, complete boolean, problem text)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    most constant integer := 10000;
    w constant tidemark.worker := (select w from tidemark.worker w where w.worker = source_rewind_outlook.worker);
    s constant tidemark.source := (select s from tidemark.source s where s.source = source_rewind_outlook.source);
    numbered constant boolean := s.safety in ('sequence', 'capture');
    c tidemark.worker_cursor;
    place_ts timestamptz;
    got tidemark.source_page;
begin
    for c in
        select x.* from tidemark.worker_cursor x
        where x.worker = source_rewind_outlook.worker and x.source = source_rewind_outlook.source order by x.shard
    loop
        place_ts := tidemark.source_rewind_place(s, c, to_ts, to_id);
        shard := c.shard;
        watermark_ts := c.watermark_ts;
        watermark_id := c.watermark_id;
        "rows" := 0;
        complete := true;
        problem := null;
        begin
            if place_ts is not null or to_id is not null then
                -- As a pass reads them: numbers as those of holes, times as those below a horizon.
                got := tidemark.source_look(
                    (tidemark.source_shape(s)).relation, tidemark.source_query(s, w.shards, 'forward', 'keys'),
                    case when isfinite(place_ts) then place_ts - interval '1 microsecond' else place_ts end,
                    case when numbered then '9223372036854775807' end, c.watermark_ts + interval '1 microsecond',
                    most + 1, null, c.shard, 0,
                    case when numbered
                         then int8multirange(int8range(to_id::bigint + 1,
                                                       greatest(c.watermark_id::bigint, to_id::bigint) + 1)) end,
                    keep_xid => 0);
                "rows" := least(got.taken, most);
                complete := got.examined <= most;
            end if;
        exception when others or assert_failure or query_canceled then
            "rows" := null;
            complete := false;
            problem := sqlerrm;
        end;
        return next;
        -- Nothing ends what runs on after a time-out.
        exit when problem is not null;
    end loop;
    if not found then
        raise exception using errcode = 'TM004',
            message = format('worker %s has no cursor of source %s', source_rewind_outlook.worker,
                             source_rewind_outlook.source),
            hint = 'select worker, source, shard from tidemark.worker_cursor;';
    end if;
end
$$;
comment on function tidemark.source_rewind_outlook(text, text, timestamptz, text) is
    'What tidemark.source_rewind to the same place would do, and moves nothing: for each cursor where it is, and how '
    'many rows its worker would read again. complete false: only the first 10000 rows from there on were looked at. '
    'rows null: they cannot be counted, and problem says why. Raises TM004, TM005.';
grant execute on function tidemark.source_rewind_outlook(text, text, timestamptz, text) to tidemark_admin;
