create or replace function tidemark.cursor_held(worker text)
returns table (source text, shard integer, holes bigint, held_by text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return query
    select c.source, c.shard, h.n,
           case when not isempty(c.fenced) then tidemark.fence_blame(
               c.fence, case when c.source = 'outbox' then 'tidemark.outbox'::regclass
                             else tidemark.source_fence(s) end) end
    from tidemark.worker_cursor c
    left join tidemark.source s on s.source = c.source
    cross join lateral (
        select coalesce(sum(upper(r) - lower(r)), 0)::bigint as n from unnest(c.holes + c.fenced) r) h
    where c.worker = cursor_held.worker;
end
$$;
comment on function tidemark.cursor_held(text) is
    'The holes of each cursor of a worker: numbers below the watermark that have not shown up yet, and the '
    'transactions that keep them open, the oldest five. held_by null: none does any more, and the next pass closes '
    'them.';
grant execute on function tidemark.cursor_held(text) to tidemark_reader, tidemark_executor;
