-- public
create or replace function tidemark.letter_job_cancel(id bigint, reason text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    job tidemark.letter_job;
begin
    if coalesce(btrim(letter_job_cancel.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'cancelling a job needs a reason';
    end if;
    select j.* into job from tidemark.letter_job j where j.id = letter_job_cancel.id for update;
    if not found then
        raise exception using errcode = 'TM004', message = format('there is no job %s', letter_job_cancel.id),
            hint = 'Jobs: select * from tidemark.letter_job_summary;';
    elsif job.finished_at is not null then
        raise exception using errcode = 'TM013', message = format('job %s is over since %s', job.id, job.finished_at);
    end if;
    update tidemark.letter_job j set finished_at = clock_timestamp(), cancelled_by = tidemark.login()
    where j.id = job.id;
    insert into tidemark.audit (action, object, reason, after)
    values ('letter_job_cancel', 'letter_job ' || job.id, letter_job_cancel.reason,
            jsonb_build_object('letters', job.letters, 'done', job.done));
end
$$;
comment on function tidemark.letter_job_cancel(bigint, text) is
    'Ends a job of tidemark.letter_job_add where it stands. What it has done stays done. Raises TM004, TM005, TM013 '
    '(the job is over).';
grant execute on function tidemark.letter_job_cancel(bigint, text) to tidemark_admin;
