-- The same on every supported version: PostgreSQL 18 has uuidv7(), but its clock may run ahead of this one, and an
-- event is found by the equality of this time and created_at.
create or replace function tidemark.event_uuid(at timestamptz)
returns uuid
language sql volatile parallel safe
as $$
    select (tidemark.event_uuid_time(at)
            operator(pg_catalog.||) pg_catalog.substr(pg_catalog.gen_random_uuid()::text, 16))::uuid
$$;
comment on function tidemark.event_uuid(timestamptz) is 'A new version 7 uuid whose time is at, in milliseconds.';
