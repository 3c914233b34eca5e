create or replace function tidemark.replay_end(job tidemark.replay_job)
returns tidemark.replay_job
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    -- The route is committed: a pass that has read without it has read no further, but for numbers that are still open,
    -- and one that reads now leaves evidence.
    upto constant bigint := coalesce((select max(o.seq) from tidemark.outbox o), 0);
begin
    if job.open_end then
        job.open_end := false;
        job.last_seq := greatest(job.last_seq, upto);
        if upto < job.first_seq then
            job.passed_seq := job.last_seq;
        end if;
    end if;
    return job;
end
$$;
comment on function tidemark.replay_end(tidemark.replay_job) is
    'A replay with its end set, where that was open: called once the transaction that asked for it has committed.';
