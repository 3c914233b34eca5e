-- Inlined where it is used, so it has no search_path. A payload that is stored as it is, as small ones are, is not
-- looked at; with nothing added to it, one that is compressed is what it is.
create or replace function tidemark.payload_bytes(payload jsonb)
returns bigint
language sql stable parallel safe
as $$
    select case when pg_catalog.pg_column_compression(payload) is null then pg_catalog.pg_column_size(payload)
                else pg_catalog.pg_column_size(payload operator(pg_catalog.||) '{}') end
$$;
comment on function tidemark.payload_bytes(jsonb) is
    'The size of a stored payload for its readers: without compression.';
