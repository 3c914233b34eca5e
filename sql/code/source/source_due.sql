-- Each part of a page that is halved reads its own rows again, whatever else has become due meanwhile.
create or replace function tidemark.source_due(
    worker_id integer, source text, shard integer, rows_limit integer, ids text[])
returns table (item_id text, item_ts timestamptz, snapshot jsonb)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
    (select p.item_id, p.item_ts, p.snapshot
     from tidemark.pending_row p
     where p.worker_id = source_due.worker_id and p.source = source_due.source and p.shard = source_due.shard
       and source_due.ids is null and p.next_attempt_at <= now()
     order by p.next_attempt_at, p.item_id limit least(source_due.rows_limit, 100))
    union all
    select p.item_id, p.item_ts, p.snapshot
    from tidemark.pending_row p
    where p.worker_id = source_due.worker_id and p.source = source_due.source and p.shard = source_due.shard
      and p.item_id = any (source_due.ids)
$$;
comment on function tidemark.source_due(integer, text, integer, integer, text[]) is
    'The failed rows that are due for another attempt, at most 100; ids: those that an earlier call has named.';
grant execute on function tidemark.source_due(integer, text, integer, integer, text[]) to tidemark_executor;
