create or replace function tidemark.command_place(document json, path integer[], key text)
returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    place text := '';
    value json := document;
    name text;
    i integer;
begin
    foreach i in array path loop
        if json_typeof(value) = 'array' then
            name := i - 1;
            value := value -> (i - 1);
        else
            select o.key, o.value into name, value
            from json_each(value) with ordinality o (key, value, n) where o.n = i;
        end if;
        place := left(place || replace(replace(left(name, 200), '~', '~0'), '/', '~1') || '/', 200);
    end loop;
    return left(place || replace(replace(left(key, 200), '~', '~0'), '/', '~1'), 200);
end
$$;
comment on function tidemark.command_place(json, integer[], text) is
    'The place of a member, as a JSON pointer without its first slash, at most 200 characters of it. path: at each '
    'level the number, from 1, of the member or element that holds it; key: its name.';
