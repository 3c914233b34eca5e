create or replace function tidemark.source_rewind_place(
    s tidemark.source,
    c tidemark.worker_cursor,
    to_ts timestamptz,
    to_id text)
returns timestamptz
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    numbered constant boolean := s.safety in ('sequence', 'capture');
    origin constant timestamptz := '2000-01-01 00:00:00+00';
    place_ts timestamptz := to_ts;
    mark timestamptz;
begin
    if numbered and (to_ts is not null or case
        when to_id ~ '^-?[0-9]{1,19}$' then to_id::numeric not between -9223372036854775808 and 9223372036854775806
        else to_id is not null end) then
        raise exception using errcode = 'TM005',
            message = format('source %s is ordered by its id: rewind it to a number', s.source);
    elsif not numbered and to_ts is null and to_id is not null then
        raise exception using errcode = 'TM005',
            message = format('source %s is ordered by its timestamp: rewind it to a time', s.source);
    end if;
    if s.sweep_window is not null and isfinite(place_ts) then
        -- The counts are by whole buckets.
        place_ts := date_bin(s.bucket, place_ts, origin);
    elsif s.sweep_window is not null and place_ts is null and isfinite(c.watermark_ts)
        and c.metadata ->> 'home' is distinct from tidemark.source_home((tidemark.source_shape(s)).relation) then
        -- A sweep knows late rows by the numbers of their transactions, which are another cluster's now.
        mark := least((c.sweep ->> 'mark')::timestamptz, c.watermark_ts);
        place_ts := case when mark >= timestamptz '4713-01-01 00:00:00+00 BC' + s.sweep_window + s.bucket
                         then date_bin(s.bucket, mark - s.sweep_window, origin) else '-infinity' end;
    end if;
    if numbered and to_id::bigint > c.watermark_id::bigint or place_ts > c.watermark_ts then
        raise exception using errcode = 'TM005',
            message = format('worker %s, source %s, shard %s is at %s: it can be rewound, not moved forwards to %s',
                             c.worker, c.source, c.shard, coalesce(c.watermark_ts::text, c.watermark_id),
                             coalesce(to_ts::text, to_id));
    end if;
    return place_ts;
end
$$;
comment on function tidemark.source_rewind_place(tidemark.source, tidemark.worker_cursor, timestamptz, text) is
    'The time to which a rewind of the cursor to to_ts or to_id goes: with a sweep, the beginning of a bucket. With '
    'neither, and a sweep, it is the beginning of the window if the table or the cluster is another one than was read '
    'before. Null: it goes to the number, or nowhere. Raises TM005 where it cannot go there.';
grant execute on function tidemark.source_rewind_place(tidemark.source, tidemark.worker_cursor, timestamptz, text) to
    tidemark_admin;
