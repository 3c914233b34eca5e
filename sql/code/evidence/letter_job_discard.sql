create or replace function tidemark.letter_job_discard(id bigint, most integer)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    job constant tidemark.letter_job := tidemark.letter_job_claim(letter_job_discard.id);
    n bigint;
begin
    update tidemark.dead_letter l
    set resolved_at = clock_timestamp(), resolution = 'discarded', resolved_by = job.requested_by,
        resolution_reason = job.reason
    where l.id = any (array(
        select o.id from tidemark.dead_letter o
        where job.action = 'discard' and o.resolved_at is null and o.last_failed_at < job.requested_at
          and (job.route_id is null or o.route_id = job.route_id)
          and (job.source is null or o.source = job.source)
          and (job.error_code is null or o.error_code = job.error_code)
          -- Its replay is under way.
          and not exists (select from tidemark.pending p where p.dead_letter_id = o.id)
          and not exists (select from tidemark.pending_row p where p.dead_letter_id = o.id)
        order by o.last_failed_at limit most for update skip locked));
    get diagnostics n = row_count;
    return n;
end
$$;
comment on function tidemark.letter_job_discard(bigint, integer) is
    'Discards letters of a job that is to discard them, at most so many, in the name of the role that asked for it. '
    'Returns how many.';
grant execute on function tidemark.letter_job_discard(bigint, integer) to tidemark_executor;
