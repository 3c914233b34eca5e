create or replace function tidemark.source_part(suspects bigint)
returns integer
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    -- Two more time-outs find one row among 1,000.
    select least(greatest(1, suspects / 32), 50000)::integer
$$;
comment on function tidemark.source_part(bigint) is
    'How many rows to hand over at once when one of suspects rows may hang.';
grant execute on function tidemark.source_part(bigint) to tidemark_executor;
