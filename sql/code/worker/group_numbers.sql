create or replace function tidemark.group_numbers(batch tidemark.batch, members integer[])
returns int8multirange
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    others integer[];
    numbers int8multirange;
begin
    if cardinality(members) = cardinality(batch.groups) then
        return batch.seqs;
    elsif cardinality(members) = 1 then
        return (batch.groups[members[1]]).seqs;
    end if;
    others := array(
        select n from generate_subscripts(batch.groups, 1) n where n <> all (members));
    if cardinality(others) < cardinality(members) then
        -- Removing a few numbers from all is a merge; collecting many numbers is a sort.
        return batch.seqs - tidemark.group_numbers(batch, others);
    end if;
    select range_agg((batch.groups[m]).seqs) into numbers from unnest(members) m;
    return numbers;
end
$$;
comment on function tidemark.group_numbers(tidemark.batch, integer[]) is
    'The numbers of the events in the batch''s groups at these positions.';
grant execute on function tidemark.group_numbers(tidemark.batch, integer[]) to tidemark_executor;
