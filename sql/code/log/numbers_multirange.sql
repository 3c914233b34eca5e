create or replace function tidemark.numbers_multirange(numbers bigint[])
returns int8multirange
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return coalesce((select range_agg(int8range(n, n + 1)) from unnest(numbers) n), '{}');
end
$$;
comment on function tidemark.numbers_multirange(bigint[]) is
    'The multirange of these numbers, in any order; empty for none, and for null.';
grant execute on function tidemark.numbers_multirange(bigint[]) to tidemark_reader, tidemark_executor;
