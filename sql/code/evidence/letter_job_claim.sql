create or replace function tidemark.letter_job_claim(id bigint)
returns tidemark.letter_job
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
    select j.* from tidemark.letter_job j
    where j.finished_at is null and (letter_job_claim.id is null or j.id = letter_job_claim.id)
      and j.due_at <= clock_timestamp()
      -- Letters for targets outside the database wait for the worker of their route.
      and (select a.is_full from tidemark.letter_job_ahead(j) a) is not true
    order by j.due_at, j.id limit 1
    for update skip locked
$$;
comment on function tidemark.letter_job_claim(bigint) is
    'Locks the job, or one of all, for this transaction; null: none is due, or another session does it.';
grant execute on function tidemark.letter_job_claim(bigint) to tidemark_executor;
