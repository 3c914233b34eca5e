create or replace function tidemark.pattern_matches(pattern text, value text)
returns boolean
language sql immutable parallel safe
as $$
    select case when pg_catalog.right(pattern, 1) = '*'
                then pg_catalog.starts_with(value, pg_catalog.left(pattern, -1))
                else pattern = value end
$$;
comment on function tidemark.pattern_matches(text, text) is
    'True where the value is the pattern, or begins with the part of the pattern before its final "*".';
grant execute on function tidemark.pattern_matches(text, text) to tidemark_reader, tidemark_executor;
