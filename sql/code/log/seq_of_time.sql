-- Numbers and times do not rise in exactly the same order, and a clock may be set back. So each partition is asked, by
-- the BRIN index, whether it has such an event, which costs little where it has none, and one partition is read for
-- its first. In one statement over the log the planner walks through all numbers from its end.
create or replace function tidemark.seq_of_time(at timestamptz, before boolean default false)
returns bigint
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_indexscan = off
set enable_indexonlyscan = off
set jit = off
as $$
declare
    statement constant text := case when before then 'select max(o.seq) from %s o where o.created_at < $1'
                                    else 'select min(o.seq) from %s o where o.created_at >= $1' end;
    part record;
    number bigint;
    in_rest bigint;
begin
    -- Its lock on the log keeps maintain from dropping a partition meanwhile.
    perform from tidemark.outbox o where o.seq = 0;
    for part in
        select p.partition, p.first_seq from tidemark.partitions('tidemark.outbox') p
        order by p.first_seq * case when before then -1 else 1 end nulls first
    loop
        execute format(statement, part.partition) into number using at;
        if part.first_seq is null then
            in_rest := number;
            number := null;
        end if;
        exit when number is not null;
    end loop;
    return case when before then greatest(number, in_rest) else least(number, in_rest) end;
end
$$;
comment on function tidemark.seq_of_time(timestamptz, boolean) is
    'The lowest number of an event of this time or later; with before the highest of an earlier one. Null: none.';
grant execute on function tidemark.seq_of_time(timestamptz, boolean) to tidemark_reader, tidemark_executor;
