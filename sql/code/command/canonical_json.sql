create or replace function tidemark.canonical_json(document jsonb)
returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    number text;
    whole text;
    digits text;
    n integer;
    k integer;
    wide boolean;
begin
    case jsonb_typeof(document)
    when 'object' then
        -- RFC 8785 orders by UTF-16, which differs from the order of code points above U+FFFF only.
        select bool_or(octet_length(o.key) <> length(o.key)) into wide from jsonb_object_keys(document) o (key);
        return coalesce((
            select '{' || string_agg(to_json(o.key)::text || ':' || tidemark.canonical_json(o.value), ','
                                     order by (case when wide then (
                                         select coalesce(string_agg(case when ascii(c) < 65536
                                                then lpad(to_hex(ascii(c)), 4, '0')
                                            else to_hex(55296 + (ascii(c) - 65536) / 1024)
                                                 || to_hex(56320 + (ascii(c) - 65536) % 1024) end, '' order by i), '')
                                         from regexp_split_to_table(o.key, '') with ordinality s (c, i) where c <> '')
                                      else o.key end) collate "C") || '}'
            from jsonb_each(document) o), '{}');
    when 'array' then
        return coalesce((select '[' || string_agg(tidemark.canonical_json(a.value), ',' order by a.i) || ']'
                         from jsonb_array_elements(document) with ordinality a (value, i)), '[]');
    when 'string' then
        -- PostgreSQL escapes what RFC 8785 escapes, in the same way.
        return to_json(document #>> '{}')::text;
    when 'number' then
        -- As ECMAScript writes it, but of all digits: a double would make one number of two (2^53 and 2^53 + 1).
        number := trim_scale((document #>> '{}')::numeric)::text;
        whole := ltrim(split_part(number, '.', 1), '-');
        digits := ltrim(whole || split_part(number, '.', 2), '0');
        n := length(whole) - (length(whole || split_part(number, '.', 2)) - length(digits));
        digits := rtrim(digits, '0');
        k := length(digits);
        return case when k = 0 then '0' else
            case when left(number, 1) = '-' then '-' else '' end || case
                when n > 21 or n < -5 then left(digits, 1) || case when k > 1 then '.' || substr(digits, 2) else '' end
                    || 'e' || case when n > 0 then '+' else '-' end || abs(n - 1)
                when n >= k then digits || repeat('0', n - k)
                when n > 0 then left(digits, n) || '.' || substr(digits, n + 1)
                else '0.' || repeat('0', -n) || digits end
            end;
    else
        return document::text;
    end case;
end
$$;
comment on function tidemark.canonical_json(jsonb) is
    'The document in the canonical form of RFC 8785: one text for each value, however it was written. A number is '
    'written with all of its digits, also where a double would not hold them.';
grant execute on function tidemark.canonical_json(jsonb) to tidemark_reader, tidemark_executor;
