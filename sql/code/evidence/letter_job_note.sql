create or replace function tidemark.letter_job_note(
    id bigint,
    after_id bigint,
    done bigint,
    outcomes jsonb,
    waits_for text,
    more boolean)
returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
    update tidemark.letter_job j
    set after_id = coalesce(letter_job_note.after_id, j.after_id), done = j.done + letter_job_note.done,
        outcomes = tidemark.jsonb_add(j.outcomes, letter_job_note.outcomes),
        waits_for = letter_job_note.waits_for,
        waits_since = case when letter_job_note.waits_for is not null
                                then case when letter_job_note.done = 0 then coalesce(j.waits_since, clock_timestamp())
                                          else clock_timestamp() end end,
        due_at = clock_timestamp() + case when letter_job_note.waits_for is not null then interval '10 seconds'
                                          else coalesce(make_interval(secs => letter_job_note.done / j.rate),
                                                        interval '0') end,
        finished_at = case when not letter_job_note.more then clock_timestamp() end
    where j.id = letter_job_note.id and j.finished_at is null
$$;
comment on function tidemark.letter_job_note(bigint, bigint, bigint, jsonb, text, boolean) is
    'Records a part of a job in the transaction that did it. A job that waits is tried again after 10 seconds, '
    'one with a rate when what it has done is due by it.';
grant execute on function tidemark.letter_job_note(bigint, bigint, bigint, jsonb, text, boolean) to tidemark_executor;
