create or replace function tidemark.source_sequence_fault(sequence regclass)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select format('%s has %s', source_sequence_fault.sequence, concat_ws(', ',
            case when s.seqcache <> 1
                      then format('cache %s: sessions keep numbers in reserve and use them out of order',
                                  s.seqcache) end,
            case when s.seqincrement <> 1
                      then format('increment %s: the reader waits for every number in '
                                  'between', s.seqincrement) end,
            case when s.seqcycle then 'cycle: its numbers repeat' end))
        from pg_sequence s
        where s.seqrelid = source_sequence_fault.sequence and (s.seqcache <> 1 or s.seqincrement <> 1 or s.seqcycle));
end
$$;
comment on function tidemark.source_sequence_fault(regclass) is
    'The options of a sequence that the safety sequence cannot be with, and why. Null: it can.';
grant execute on function tidemark.source_sequence_fault(regclass) to tidemark_reader, tidemark_executor;
