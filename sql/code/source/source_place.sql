create or replace function tidemark.source_place(at timestamptz, id text)
returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    -- Not by the text of a timestamp, which depends on the session.
    select concat_ws(' ',
                     case when isfinite(source_place.at)
                               then trunc(extract(epoch from source_place.at) * 1000000)::text end,
                     coalesce(source_place.id, '-'))
$$;
comment on function tidemark.source_place(timestamptz, text) is 'A watermark as one text, to compare it with another.';
