create or replace function tidemark.cursor_sample_take()
returns void
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
    delete from tidemark.cursor_sample s
    where not exists (select from tidemark.worker_cursor c
                      where c.worker = s.worker and c.source = s.source and c.shard = s.shard);
    delete from tidemark.source_unread n
    where not exists (select from tidemark.worker_cursor c
                      where c.worker = n.worker and c.source = n.source and c.shard = n.shard);
    insert into tidemark.cursor_sample as s (worker, source, shard, older_at, older_seen, newer_at, newer_seen)
    select c.worker, c.source, c.shard, clock_timestamp(), c.events_seen, clock_timestamp(), c.events_seen
    from tidemark.worker_cursor c
    on conflict (worker, source, shard) do update
    set older_at = s.newer_at, older_seen = s.newer_seen, newer_at = excluded.newer_at, newer_seen = excluded.newer_seen
    -- Several daemons call this: the rate must still cover a period of some length.
    where s.newer_at not between excluded.newer_at - interval '50 seconds' and excluded.newer_at
$$;
comment on function tidemark.cursor_sample_take() is
    'Records how many events each cursor has seen, at most once in 50 seconds.';
