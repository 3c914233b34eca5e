create or replace function tidemark.multirange_numbers(seqs int8multirange)
returns bigint[]
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return array(select n from unnest(seqs) r, generate_series(lower(r), upper(r) - 1) n order by n);
end
$$;
comment on function tidemark.multirange_numbers(int8multirange) is 'The numbers in a multirange, in rising order.';
grant execute on function tidemark.multirange_numbers(int8multirange) to tidemark_reader, tidemark_executor;
