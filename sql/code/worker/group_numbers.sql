create or replace function tidemark.group_numbers(
    groups tidemark.event_group[], seqs int8multirange, members bigint[])
returns int8multirange
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Removing a few numbers from all is a merge; collecting many numbers is a sort.
    if cardinality(members) * 2 > cardinality(groups) then
        return seqs - (select range_agg(g.seqs) from unnest(groups) with ordinality
                           g (domain, type, stream, matched, events, seqs, n) where g.n <> all (members));
    end if;
    return (select range_agg((groups[n]).seqs) from unnest(members) n);
end
$$;
comment on function tidemark.group_numbers(tidemark.event_group[], int8multirange, bigint[]) is
    'The numbers of the events of some groups of a batch (members, their places, not all), whose numbers are seqs.';
grant execute on function tidemark.group_numbers(tidemark.event_group[], int8multirange, bigint[])
    to tidemark_executor;
