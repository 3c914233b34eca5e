create or replace function tidemark.transform_problem(route tidemark.outbound_route, out problem text, out hint text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if route.transform is null and route.columns is null then
        return;
    elsif route.target_kind = 'kafka' and route.options ->> 'format' = 'raw' then
        problem := 'the format raw takes neither transform nor columns';
        hint := 'The payload names the record whose bytes are sent. The format payload sends what a transform makes.';
    elsif route.target_kind = 'notify' and route.columns is not null then
        problem := 'notify takes no columns';
        hint := 'A notification carries no payload. A transform may drop events.';
    elsif cardinality(route.columns) = 0 or array_position(route.columns, null) is not null then
        problem := format('columns is %s, must name top-level keys of the payload', route.columns);
        hint := 'Null: all keys.';
    elsif route.transform is not null then
        problem := (tidemark.transform_target(route.transform)).problem;
        hint := 'transform is schema.function, taking the payload as jsonb and returning jsonb; null drops the event.';
    end if;
end
$$;
comment on function tidemark.transform_problem(tidemark.outbound_route) is
    'What is wrong with a route''s transform or columns, with a hint. Null: nothing.';
grant execute on function tidemark.transform_problem(tidemark.outbound_route)
    to tidemark_reader, tidemark_executor, tidemark_admin;
