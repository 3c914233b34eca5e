-- Inlined by its callers, so it has no search_path. A payload that is stored uncompressed, as small ones are, is not
-- read; appending '{}' to a compressed one shows its full size.
create or replace function tidemark.payload_bytes(payload jsonb)
returns bigint
language sql stable parallel safe
as $$
    select case when pg_catalog.pg_column_compression(payload) is null then pg_catalog.pg_column_size(payload)
                else pg_catalog.pg_column_size(payload operator(pg_catalog.||) '{}') end
$$;
comment on function tidemark.payload_bytes(jsonb) is
    'The size of a stored payload without compression, as its readers get it.';
