create or replace function tidemark.letter_job_ahead(
    job tidemark.letter_job,
    out route_id integer,
    out letters bigint,
    out is_full boolean)
language sql stable security definer
set search_path = pg_catalog, pg_temp
-- Read no more of what waits than is counted, whatever the statistics say.
set enable_seqscan = off
set enable_sort = off
set jit = off
as $$
    select r.id, n.letters, n.letters = 1000
    from tidemark.outbound_route r
    cross join lateral (
        select count(*) as letters
        from (select from tidemark.pending p where p.route_id = r.id and p.replay
              order by p.next_attempt_at limit 1000) p) n
    where job.action = 'replay' and n.letters > 0
      and (r.id = job.route_id
           -- Letters of routes that do not deliver are not handed over (tidemark.dead_letter_replay_many).
           or job.route_id is null and job.source = 'outbox' and tidemark.route_delivers(r)
              and exists (select from tidemark.dead_letter l
                          where l.route_id = r.id and l.resolved_at is null and l.last_failed_at < job.requested_at))
    order by n.letters desc, r.id limit 1
$$;
comment on function tidemark.letter_job_ahead(tidemark.letter_job) is
    'Of the routes of a job, that of which the most letters wait for the worker, and how many, counted up to 1,000. '
    'With these it is full: the job goes on once they are fewer, so that one that is cancelled is soon over.';
grant execute on function tidemark.letter_job_ahead(tidemark.letter_job) to tidemark_reader, tidemark_executor;
