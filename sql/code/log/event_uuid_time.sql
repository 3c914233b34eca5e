-- A function of its own, since all events of a statement share the result. The time is cut to milliseconds first, so
-- that floating point loses nothing.
create or replace function tidemark.event_uuid_time(at timestamptz)
returns text
language sql stable parallel safe
as $$
    select overlay(
        pg_catalog.lpad(pg_catalog.to_hex(
            (pg_catalog.date_part('epoch', pg_catalog.date_trunc('milliseconds', at)) * 1000)::bigint), 12, '0')
        placing '-' from 9 for 0) || '-7'
$$;
comment on function tidemark.event_uuid_time(timestamptz) is
    'The first 15 characters of a version 7 uuid: its time, in milliseconds, and its version.';
