create or replace function tidemark.full_xid(id xid, next_id xid8)
returns xid8
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    select (next_id::text::bigint - ((next_id::text::bigint - id::text::bigint) & 4294967295))::text::xid8
$$;
comment on function tidemark.full_xid(xid, xid8) is
    'The full number of the transaction that wrote a row: its xmin with the upper half, which the row does not store. '
    'next_id is a number that is not below it.';
grant execute on function tidemark.full_xid(xid, xid8) to tidemark_admin;
