-- As pg_size_bytes, without an error, and with the same units in each version of PostgreSQL.
create or replace function tidemark.disk_bytes(size text)
returns numeric
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    select round(m[1]::numeric * power(1024::numeric, strpos('kmgtp', lower(left(coalesce(m[2], 'b'), 1)))))
    from regexp_match(size, '^[[:space:]]*([0-9]{1,18}(?:[.][0-9]{1,6})?)[[:space:]]*(bytes|b|[kmgtp]b)?[[:space:]]*$',
                      'i') m
$$;
comment on function tidemark.disk_bytes(text) is
    'The setting disk.size in bytes: a number, with a unit from kB to PB or without. Null: it cannot be read.';
grant execute on function tidemark.disk_bytes(text) to tidemark_admin;
