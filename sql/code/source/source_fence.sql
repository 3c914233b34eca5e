create or replace function tidemark.source_fence(definition tidemark.source)
returns regclass
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return case definition.safety when 'capture' then 'tidemark.outbox'::regclass
                else (tidemark.source_shape(definition)).relation end;
end
$$;
comment on function tidemark.source_fence(tidemark.source) is
    'The table whose writers can keep a number of the source open: the source''s own table; for the safety capture the '
    'log.';
