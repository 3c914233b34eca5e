create or replace function tidemark.source_types(definition tidemark.source)
returns tidemark.source
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    shape constant record := tidemark.source_shape(source_types.definition);
begin
    if shape.problem is not null then
        raise exception using errcode = 'TM005', message = format('source %s: %s', definition.source, shape.problem);
    end if;
    definition.id_type := shape.id_type;
    definition.id_collate_c := shape.id_collate_c;
    definition.timestamp_type := shape.timestamp_type;
    return definition;
end
$$;
comment on function tidemark.source_types(tidemark.source) is
    'The source with the types that the catalog has. Raises TM005 naming the table or column that is missing or unfit.';
grant execute on function tidemark.source_types(tidemark.source) to tidemark_admin;
