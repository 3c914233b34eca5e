create or replace function tidemark.uuid_time(id uuid)
returns timestamptz
language sql immutable strict parallel safe
as $$
    select timestamptz 'epoch' + interval '1 millisecond'
        * ('x' || pg_catalog.lpad(pg_catalog.left(pg_catalog.replace(id::text, '-', ''), 12), 16, '0'))::bit(64)::bigint
$$;
comment on function tidemark.uuid_time(uuid) is
    'The millisecond that a version 7 uuid holds: an event has uuid_time(event_id) <= created_at < '
    'uuid_time(event_id) + 1 ms.';
grant execute on function tidemark.uuid_time(uuid) to tidemark_reader, tidemark_executor;
