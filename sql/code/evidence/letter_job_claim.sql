create or replace function tidemark.letter_job_claim(id bigint)
returns tidemark.letter_job
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
    select j.* from tidemark.letter_job j
    where j.finished_at is null and (letter_job_claim.id is null or j.id = letter_job_claim.id)
      and j.due_at <= clock_timestamp()
      -- Letters for targets outside the database wait for the worker of their route: at most so many at a time, so that
      -- a job that is cancelled is soon over.
      and (j.action = 'discard' or j.route_id is null or 1000 > (
          select count(*) from (
              select from tidemark.pending p where p.route_id = j.route_id and p.replay
              order by p.next_attempt_at limit 1000) p))
    order by j.due_at, j.id limit 1
    for update skip locked
$$;
comment on function tidemark.letter_job_claim(bigint) is
    'Locks the job, or one of all, for this transaction; null: none is due, or another session does it.';
grant execute on function tidemark.letter_job_claim(bigint) to tidemark_executor;
