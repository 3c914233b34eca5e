create or replace function tidemark.source_part(suspects bigint)
returns integer
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    -- One row of 1,000 is found with two more time-outs.
    select least(greatest(1, suspects / 32), 50000)::integer
$$;
comment on function tidemark.source_part(bigint) is
    'How many rows are handed over at once where one of so many rows may hang.';
grant execute on function tidemark.source_part(bigint) to tidemark_executor;
