create or replace function tidemark.partitions(parent regclass)
returns table (partition regclass, first_seq bigint, end_seq bigint)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select c.oid::regclass, b.bounds[1]::bigint, b.bounds[2]::bigint
    from pg_inherits i
    join pg_class c on c.oid = i.inhrelid
    cross join lateral regexp_match(pg_get_expr(c.relpartbound, c.oid),
                                    'FROM [(]''?([0-9]+)''?[)] TO [(]''?([0-9]+)''?[)]') b (bounds)
    where i.inhparent = parent
    order by 2 nulls last
$$;
comment on function tidemark.partitions(regclass) is
    'Partitions of a table, in order, each with its first number and the one after its last; both null for the '
    'partition that takes the rest.';
grant execute on function tidemark.partitions(regclass) to tidemark_reader;
