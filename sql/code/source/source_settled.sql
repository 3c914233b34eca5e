-- Not a security definer: a role that reads the table can usually look at its sequence too.
--
-- First the sequence, then the writers, and the rows in a later statement: a writer that took a number up to that value
-- held the lock before, and has ended by now. tidemark.read_outbox tells why.
create or replace function tidemark.source_settled(definition tidemark.source, relation regclass)
returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    sequence constant regclass := tidemark.source_sequence(relation, definition.id_column);
    last bigint;
begin
    if not has_sequence_privilege(sequence, 'select, usage') then
        return null;
    end if;
    last := pg_sequence_last_value(sequence);
    return case when tidemark.source_quiet(relation) then last end;
end
$$;
comment on function tidemark.source_settled(tidemark.source, regclass) is
    'The number of a source with the safety sequence up to which no row can appear any more that a later statement '
    'does not see. Null: unknown, as writers are under way, or the caller may not look at the sequence.';
grant execute on function tidemark.source_settled(tidemark.source, regclass) to tidemark_executor;
