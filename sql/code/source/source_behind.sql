-- Not a security definer: a role that reads the table can usually look at its sequence too.
create or replace function tidemark.source_behind(definition tidemark.source, relation regclass, mark bigint)
returns text
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    sequence constant regclass :=
        case when definition.safety = 'sequence' then tidemark.source_sequence(relation, definition.id_column) end;
    last bigint;
begin
    if sequence is null or not has_sequence_privilege(sequence, 'select, usage') then
        return null;
    end if;
    last := coalesce(pg_sequence_last_value(sequence),
                     (select q.seqstart - 1 from pg_sequence q where q.seqrelid = sequence));
    return case when last < mark then format(
        'sequence %s is at %s, behind %s: it was set back, or rows came with numbers of their own. What it hands out '
        'next would be passed over. Set it forward (select setval), or rewind to where its numbers go on: tidemark '
        'worker rewind NAME --source %s --to-id %s',
        sequence, last, mark, definition.source, last) end;
end
$$;
comment on function tidemark.source_behind(tidemark.source, regclass, bigint) is
    'Whether the sequence of a source with the safety sequence is behind mark, a number that was already read. The '
    'reader would then pass over new rows. Null: the sequence is not behind, or the caller may not look at it. Call it '
    'after the number was read.';
grant execute on function tidemark.source_behind(tidemark.source, regclass, bigint) to tidemark_executor;
