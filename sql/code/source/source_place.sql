create or replace function tidemark.source_place(at timestamptz, id text)
returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    -- The text of a timestamp depends on the session, so it is not used here.
    return concat_ws(' ',
                     case when isfinite(source_place.at)
                               then trunc(extract(epoch from source_place.at) * 1000000)::text end,
                     coalesce(source_place.id, '-'));
end
$$;
comment on function tidemark.source_place(timestamptz, text) is 'A watermark as one text, for comparison with another.';
