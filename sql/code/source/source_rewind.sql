-- public
create or replace function tidemark.source_rewind(
    worker text,
    source text,
    reason text,
    to_ts timestamptz default null,
    to_id text default null)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    s constant tidemark.source := (select s from tidemark.source s where s.source = source_rewind.source);
    place_ts timestamptz;
    relation constant regclass := (tidemark.source_shape(s)).relation;
    home constant text := tidemark.source_home(relation);
    c tidemark.worker_cursor;
    done integer := 0;
begin
    if coalesce(btrim(source_rewind.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'rewinding a cursor needs a reason';
    end if;
    perform tidemark.lease_end(source_rewind.worker, source_rewind.source);
    for c in
        select x.* from tidemark.worker_cursor x
        where x.worker = source_rewind.worker and x.source = source_rewind.source order by x.shard for update
    loop
        done := done + 1;
        place_ts := tidemark.source_rewind_place(s, c, to_ts, to_id);
        c.sweep := c.sweep - 'next_xmin' - 'next_mark' - 'segment' - 'id' - 'ts';
        if c.metadata ->> 'home' is distinct from home then
            -- The numbers of its transactions come from another cluster, and say nothing of the rows that are there:
            -- of those without a usable timestamp, the sweep reads all again.
            delete from tidemark.source_ledger l
            where l.worker_id = (select w.id from tidemark.worker w where w.worker = c.worker) and l.source = c.source
              and l.shard = c.shard;
            c.sweep := jsonb_build_object('xmin', pg_snapshot_xmin(pg_current_snapshot())::text,
                                          'mark', least(c.watermark_ts, place_ts));
        end if;
        if s.safety in ('sequence', 'capture') and to_id is not null then
            c.watermark_id := source_rewind.to_id;
            c.holes := c.holes * int8multirange(int8range(null, to_id::bigint + 1));
            c.fenced := c.fenced * int8multirange(int8range(null, to_id::bigint + 1));
        elsif place_ts is not null then
            -- Read the rows of that exact time again.
            c.watermark_ts := case when isfinite(place_ts) then place_ts - interval '1 microsecond' else place_ts end;
            c.watermark_id := null;
            c.verified_through := least(c.verified_through, place_ts);
            delete from tidemark.source_count k
            where k.worker_id = (select w.id from tidemark.worker w where w.worker = c.worker) and k.source = c.source
              and k.shard = c.shard
              and k.bucket >= place_ts;
        end if;
        update tidemark.worker_cursor x
        set watermark_ts = c.watermark_ts, watermark_id = c.watermark_id,
            decided_through = tidemark.source_place(c.watermark_ts, c.watermark_id),
            holes = c.holes, fenced = c.fenced, verified_through = c.verified_through, horizon = null,
            sweep = c.sweep, metadata = c.metadata - 'clock_back' - 'below' - 'gone' - 'suspects'
                || jsonb_build_object('home', home, 'numbering', tidemark.source_numbering(s, relation)),
                updated_at = clock_timestamp()
        where x.worker = c.worker and x.source = c.source and x.shard = c.shard;
        insert into tidemark.audit (action, object, reason, before, after)
        values ('source_rewind', 'worker_cursor ' || tidemark.executor_id(c.worker, c.source, c.shard),
                source_rewind.reason, (select jsonb_build_object('place', c.decided_through)),
                jsonb_build_object('watermark_ts', c.watermark_ts, 'watermark_id', c.watermark_id));
    end loop;
    if done = 0 then
        raise exception using errcode = 'TM004',
            message = format('worker %s has no cursor of source %s', source_rewind.worker, source_rewind.source),
            hint = 'select worker, source, shard from tidemark.worker_cursor;';
    end if;
    return done;
end
$$;
comment on function tidemark.source_rewind(text, text, text, timestamptz, text) is
    'Moves a worker''s cursors of a source back: to a time (rows of that time and later are read again; with a sweep, '
    'from the beginning of its bucket) or, for the safety sequence, to just after the number to_id. With neither it '
    'accepts the current place of cursors that a finding held. If the table or the cluster is another one than was '
    'read before, all rows without a usable timestamp are read again, and with neither also the sweep_window. The '
    'worker hands over again the rows that it reads again: its handler must tolerate that. Waits for a pass under way. '
    'Returns the number of cursors. Raises TM004, TM005.';
grant execute on function tidemark.source_rewind(text, text, text, timestamptz, text) to tidemark_admin;
