create or replace function tidemark.multirange_numbers(seqs int8multirange)
returns bigint[]
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(array_agg(n order by n), '{}') from unnest(seqs) r, generate_series(lower(r), upper(r) - 1) n
$$;
comment on function tidemark.multirange_numbers(int8multirange) is 'The numbers in a multirange, rising.';
revoke all on function tidemark.multirange_numbers(int8multirange) from public;
grant execute on function tidemark.multirange_numbers(int8multirange) to tidemark_executor;
