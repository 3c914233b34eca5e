-- The same on every supported version: PostgreSQL 18 has uuidv7(), whose clock may run ahead of ours, and
-- an event is found by the equality of this time and created_at.
create or replace function tidemark.event_uuid(at timestamptz)
returns uuid
language sql volatile parallel safe
as $$
    select pg_catalog.encode(
        pg_catalog.set_bit(pg_catalog.set_bit(
            overlay(
                pg_catalog.uuid_send(pg_catalog.gen_random_uuid())
                placing substring(
                    pg_catalog.int8send(pg_catalog.floor(extract(epoch from at) * 1000)::bigint) from 3) from 1 for 6),
            52, 1), 53, 1), 'hex')::uuid
$$;
comment on function tidemark.event_uuid(timestamptz) is 'A new version 7 uuid whose time is at, in milliseconds.';
revoke all on function tidemark.event_uuid(timestamptz) from public;
