-- In text: jsonb would write 1e131000 out, with all its digits. The package internal/command has the same rule.
create or replace function tidemark.command_beyond(document text)
returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    long constant text := '[0-9][0-9.]*[eE][-+]?[0-9]+|[0-9.]{200}[0-9.]*';
    bare constant text := regexp_replace(document, E'"(?:[^"\\\\]|\\\\.)*"', '""', 'g');
    beyond boolean;
begin
    -- The digits of a number that is written without its exponent, as strict.Check counts them.
    select coalesce(bool_or(n.digits > 131072 or n.decimals > 16383 or n.double = 'infinity'), false)
           or coalesce(sum(n.digits + n.decimals), 0)
              + length(regexp_replace(regexp_replace(bare, long, '', 'g'), '[^0-9]+', '', 'g')) > 8388608
    into beyond
    from (select greatest(length(split_part(x.mantissa, '.', 1)) + x.power, 0) as digits,
                 greatest(length(split_part(x.mantissa, '.', 2)) - x.power, 0) as decimals, x.number::float8 as double
          from (select m[1] as number, split_part(lower(m[1]), 'e', 1) as mantissa,
                       coalesce(nullif(split_part(lower(m[1]), 'e', 2), ''), '0')::numeric as power
                from regexp_matches(bare, long, 'g') m) x) n;
    return beyond;
exception when numeric_value_out_of_range then
    return true; -- of the cast
end
$$;
comment on function tidemark.command_beyond(text) is
    'Whether JSON text holds a number that a double cannot hold in magnitude (over 1.7e308, or under 5e-324 and not '
    '0), one that jsonb cannot store, or numbers of more than 8,388,608 digits in total, written without exponents.';
