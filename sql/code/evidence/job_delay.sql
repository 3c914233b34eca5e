create or replace function tidemark.job_delay(rate double precision)
returns interval
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select interval '10 seconds' + coalesce(make_interval(secs => 1 / rate), interval '0')
$$;
comment on function tidemark.job_delay(double precision) is
    'How far ahead of the clock a replay or a job of dead letters with this rate (null: none) sets when it is due, at '
    'most (tidemark.replay_stage, tidemark.letter_job_note). What is due later was set before the clock went back.';
