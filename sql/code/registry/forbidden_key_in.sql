create or replace function tidemark.forbidden_key_in(document jsonb)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    plain constant text := tidemark.plain_text(document);
begin
    return (select f.key from tidemark.forbidden_key f where plain ~* f.pattern order by f.key limit 1);
end
$$;
comment on function tidemark.forbidden_key_in(jsonb) is
    'A key of tidemark.forbidden_key that the document holds at any depth, in any letter case, with or without '
    'separators, in any Unicode form that reads the same (tidemark.plain_text), also inside encoded JSON. Null: none. '
    'Look-alike letters of other alphabets count as different letters.';
grant execute on function tidemark.forbidden_key_in(jsonb) to tidemark_reader;
