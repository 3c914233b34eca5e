create or replace function tidemark.forbidden_key_in(document jsonb)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select f.key from tidemark.forbidden_key f
    where document::text ~* f.pattern
    order by f.key limit 1
$$;
comment on function tidemark.forbidden_key_in(jsonb) is 'A key of tidemark.forbidden_key that the document holds at any depth, in any letter case, with or without separators, also inside encoded JSON. Null: none.';
revoke all on function tidemark.forbidden_key_in(jsonb) from public;
grant execute on function tidemark.forbidden_key_in(jsonb) to tidemark_reader;
