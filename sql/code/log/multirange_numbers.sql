create or replace function tidemark.multirange_numbers(seqs int8multirange)
returns bigint[]
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    -- In the select list a series of one number costs a fifth of what it costs in the FROM clause. The ranges are in
    -- order.
    return array(select generate_series(lower(r), upper(r) - 1) from unnest(seqs) r);
end
$$;
comment on function tidemark.multirange_numbers(int8multirange) is 'The numbers in a multirange, in rising order.';
grant execute on function tidemark.multirange_numbers(int8multirange) to tidemark_reader, tidemark_executor;
