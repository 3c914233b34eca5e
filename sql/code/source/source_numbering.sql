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
    'Which sequence numbers the rows of a source with the safety sequence, and since when: another text after '
    'truncate … restart identity or alter sequence. Not after setval. Null: another safety, or no sequence.';
grant execute on function tidemark.source_numbering(tidemark.source, regclass) to tidemark_executor;
