-- What a reader takes for the same letters, a search finds as these letters.
create or replace function tidemark.plain_text(document jsonb)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    plain text := document::text;
    unicode constant boolean := getdatabaseencoding() = 'UTF8';
begin
    -- Escapes of JSON that stands encoded in a string. Half a surrogate pair is no character.
    if strpos(plain, E'\\u') > 0 then
        plain := (
            select string_agg(case
                when p.n = 1 then p.part
                when c.code between 32 and 126 or unicode and (c.code between 128 and 55295 or c.code > 57343)
                     then chr(c.code) || substr(p.part, 5)
                else substr(p.part, 5) end, '' order by p.n)
            from regexp_split_to_table(plain, E'\\\\+u(?=[0-9a-fA-F]{4})') with ordinality p (part, n)
            cross join lateral (select case when p.n > 1 then ('x' || left(p.part, 4))::bit(16)::integer end as code
                                offset 0) c);
    end if;
    -- Compatible forms (full width, small capitals) become letters; marks over letters, and what is not seen, go.
    if unicode and octet_length(plain) <> length(plain) then
        plain := regexp_replace(normalize(plain, nfkd),
            E'[\\u00ad\\u00b7\\u0300-\\u036f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u1ab0-\\u1aff'
            '\\u1dc0-\\u1dff\\u2000-\\u206f\\u20d0-\\u20ff'
            '\\u3001-\\u3003\\u30fb\\u3164\\ufe00-\\ufe0f\\ufe20-\\ufe2f\\ufeff'
            '\\uffa0\\ufff0-\\ufffb\\U000e0000-\\U000e0fff]',
            '', 'g');
    end if;
    return plain;
end
$$;
comment on function tidemark.plain_text(jsonb) is
    'The text of a document in which tidemark.forbidden_key_in looks for keys: escapes are resolved, Unicode has its '
    'compatible form, and marks over letters, dashes and spaces beyond ASCII, and characters of no width are left out.';
grant execute on function tidemark.plain_text(jsonb) to tidemark_reader;
