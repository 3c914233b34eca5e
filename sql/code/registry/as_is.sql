-- Inlined by the planner, so that it costs nothing and hides no index.
create or replace function tidemark.as_is(value anyelement, type anyelement)
returns anyelement
language sql immutable parallel safe
as $$
    select $1
$$;
comment on function tidemark.as_is(anyelement, anyelement) is
    'The value, which must be of the type of the second argument (a null): another type is an error while the '
    'statement is parsed, where an implicit cast of the type''s owner would run otherwise.';
grant execute on function tidemark.as_is(anyelement, anyelement) to tidemark_reader, tidemark_executor;
