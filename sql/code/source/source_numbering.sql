create or replace function tidemark.source_numbering(definition tidemark.source, relation regclass)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select c.oid || '/' || c.relfilenode from pg_class c
        where c.oid = tidemark.source_sequence(source_numbering.relation, definition.id_column)
          and definition.safety = 'sequence');
end
$$;
comment on function tidemark.source_numbering(tidemark.source, regclass) is
    'Identifies the sequence that numbers the rows of a source with the safety sequence. The text changes after '
    'truncate … restart identity or alter sequence, but not after setval. Null: another safety, or no sequence.';
grant execute on function tidemark.source_numbering(tidemark.source, regclass) to tidemark_executor;
