-- Inlined by the planner, so that it costs nothing and hides no index.
create or replace function tidemark.as_is(value anyelement, type anyelement)
returns anyelement
language sql immutable parallel safe
as $$
    select $1
$$;
comment on function tidemark.as_is(anyelement, anyelement) is
    'Returns the value, which must be of the type of the second argument (a null). A value of another type fails '
    'while the statement is parsed; without this check an implicit cast of the type''s owner would run.';
grant execute on function tidemark.as_is(anyelement, anyelement) to tidemark_reader, tidemark_executor;
