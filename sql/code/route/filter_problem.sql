create or replace function tidemark.filter_problem(filter text)
returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    token text;
    opened text[] := '{}';
begin
    -- Leftmost first: a quote is never looked for within a comment, nor a comment within a literal.
    for token in
        select m[1] from regexp_matches(filter,
            E'([[:alnum:]_&]?''(?:[^'']|'''')*''|[[:alnum:]_&]?"(?:[^"]|"")*"|--|/[*]|[*]/|'
            '[][(){};$\\\\''"]|[[:alpha:]_][[:alnum:]_]*|[\\x01-\\x08\\x0b\\x0e-\\x1f])', 'g') m
    loop
        case
        when token in ('--', '/*', '*/') then return 'holds a comment';
        when token = '$' then return 'has a $: parameters and dollar-quoted literals are not allowed';
        when token in ('''', '"') then return 'has a quote that is not closed';
        when token ~ '^[^''"].*[''"]$' then
            return 'has a prefix before a quote, such as E or U&: write a plain literal';
        -- With standard_conforming_strings off this quote would not be the end.
        when token ~ E'^''.*\\\\''' then return 'has a backslash before a quote';
        when token in ('(', '[') then opened := opened || token;
        when token in (')', ']') then
            if opened[cardinality(opened)] is distinct from (case token when ')' then '(' else '[' end) then
                return format('closes a "%s" that it has not opened', token);
            end if;
            opened := trim_array(opened, 1);
        when lower(token) in ('select', 'table', 'with') then return 'asks more than the row';
        when token ~ E'^[{};\\\\\\x01-\\x1f]$' then
            return format('holds a %s', case when token < ' ' then 'control character' else token end);
        else null;
        end case;
    end loop;
    return case when cardinality(opened) > 0 then format('does not close a "%s"', opened[cardinality(opened)]) end;
end
$$;
comment on function tidemark.filter_problem(text) is
    'Why a text cannot be put between parentheses as one condition: it has comments, literals that another setting '
    'ends elsewhere, brackets that do not match, or a query. Null: it can. Whether it compiles is not checked here.';
grant execute on function tidemark.filter_problem(text) to tidemark_reader, tidemark_executor;
