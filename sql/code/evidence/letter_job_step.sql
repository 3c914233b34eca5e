-- public
-- Not a security definer, as dead_letter_replay: an SQL target runs with the rights of the caller.
create or replace function tidemark.letter_job_step(id bigint default null)
returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    job constant tidemark.letter_job := tidemark.letter_job_claim(letter_job_step.id);
    -- Of a job with a rate a second's worth.
    page constant integer := case when job.rate < 100 then ceil(job.rate) else 100 end;
    r record;
    done bigint := 0;
    at bigint;
    outcomes jsonb := '{}';
    waits text;
begin
    if job.id is null then
        return null;
    elsif job.action = 'discard' then
        done := tidemark.letter_job_discard(job.id, page);
        outcomes := jsonb_build_object('discarded', done);
    else
        perform tidemark.session_check('a replay of dead letters',
                                       'it must see gates that were closed since it began.');
        begin
            for r in select p.* from tidemark.dead_letter_replay_many(
                         (select n.route_code from tidemark.route_name n where n.id = job.route_id),
                         job.error_code, null, job.requested_at, page, false, job.source, job.after_id) p loop
                if r.outcome = 'pending' and r.reason = 'busy' then
                    waits := r.detail;
                    exit;
                end if;
                done := done + 1;
                at := r.id;
                outcomes := tidemark.jsonb_add(outcomes, jsonb_build_object(
                    case when r.reason = 'route_paused' then 'paused' else r.outcome::text end, 1));
            end loop;
        exception when others then
            done := 0;
            at := null;
            outcomes := '{}';
            waits := case when sqlstate like 'TM%' then sqlerrm else format('an error, SQLSTATE %s', sqlstate) end;
        end;
    end if;
    perform tidemark.letter_job_note(job.id, at, done, outcomes, waits, done = page or waits is not null);
    return done;
end
$$;
comment on function tidemark.letter_job_step(bigint) is
    'Does the next part of a job of tidemark.letter_job_add (null: of one that is due), at most 100 letters, of one '
    'with a rate at most those of a second, in this transaction. A daemon calls it for all jobs. Returns how many '
    'letters it did; null: nothing is due. Letters of paused routes are left out where the job names no route, and are '
    'counted as paused. What stops it, such as a closed gate, is on record, and it is tried again after 10 seconds. '
    'Raises TM006 (isolation level of a replay).';
grant execute on function tidemark.letter_job_step(bigint) to tidemark_executor;
