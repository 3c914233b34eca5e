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
    where job.action = 'replay'
      -- In this order: of most routes nothing waits.
      and case when n.letters = 0 then false
               when job.route_id is not null then r.id = job.route_id
               -- What tidemark.dead_letter_replay_many has yet to hand over, of routes that deliver.
               else job.source = 'outbox' and tidemark.route_delivers(r)
                    and exists (select from tidemark.dead_letter l
                                where l.route_id = r.id and l.resolved_at is null
                                  and l.last_failed_at < job.requested_at
                                  and (job.error_code is null or l.error_code = job.error_code)
                                  and not exists (select from tidemark.pending q where q.dead_letter_id = l.id)) end
    order by n.letters desc, r.id limit 1
$$;
comment on function tidemark.letter_job_ahead(tidemark.letter_job) is
    'Of the routes for which a job has letters, that of which the most wait for the worker, and how many, to 1,000. '
    'With these it is full: the job goes on once they are fewer, so that one that is cancelled is soon over.';
grant execute on function tidemark.letter_job_ahead(tidemark.letter_job) to tidemark_reader, tidemark_executor;
