create or replace function tidemark.replay_bound(worker text, outcomes text[])
returns bigint
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select min(least(c.watermark_id::bigint,
                     -- A pass may have read such a number and not be settled: its event has no evidence yet.
                     case when not 'sent' = any (replay_bound.outcomes)
                          then (select min(lower(h)) - 1 from unnest(c.holes + c.fenced) h) end))
    from tidemark.worker_cursor c
    where c.worker = replay_bound.worker and c.source = 'outbox'
$$;
comment on function tidemark.replay_bound(text, text[]) is
    'How far a replay of such outcomes can go now: as far as all shards of the worker have come. One without the '
    'outcome sent, which takes what has come to nothing, also waits for the numbers that are still open.';
grant execute on function tidemark.replay_bound(text, text[]) to tidemark_reader, tidemark_executor;
