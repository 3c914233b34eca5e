-- The watch calls it too, and not only maintain: a symptom must be over as soon as its cause is, or it would be told as
-- a cause of its own.
create or replace function tidemark.findings_over()
returns setof tidemark.finding
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
    update tidemark.finding f set closed_at = clock_timestamp()
    where f.closed_at is null and not f.derived
      and (f.kind = 'cursor_lease_conflict' and f.last_seen_at < clock_timestamp() - interval '10 minutes'
           -- Of a broker: a route's is closed by its worker.
           or f.kind = 'two_copies' and f.subject like '% %'
              and f.last_seen_at < clock_timestamp() - interval '25 seconds'
           -- Of a consumer of commands: each process that sees it tells it every 30 seconds, or once a minute.
           or f.kind = 'worker_failing' and f.subject = 'commands'
              and f.last_seen_at < clock_timestamp() - interval '2 minutes'
           or f.kind = 'command_setup' and f.last_seen_at < clock_timestamp() - interval '10 minutes'
           or tidemark.letters_over(f.kind, f.subject)
           or f.kind = 'cursor_lag' and not exists (
                select from tidemark.cursor_lag l
                where tidemark.executor_id(l.worker, l.source, l.shard) = f.subject and l.gate is null
                  and l.seconds > extract(epoch from tidemark.interval_setting('lag.warn', '1 minute'))))
    returning f.*
$$;
comment on function tidemark.findings_over() is
    'Closes findings that have not recurred for a while, or whose cause an operator has removed. Returns them.';
