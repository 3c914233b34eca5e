-- public
create or replace function tidemark.replay_cancel(id bigint, reason text)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    job tidemark.replay_job;
begin
    if coalesce(btrim(replay_cancel.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'cancelling a replay needs a reason';
    end if;
    select j.* into job from tidemark.replay_job j where j.id = replay_cancel.id for update;
    if not found then
        raise exception using errcode = 'TM004', message = format('there is no replay %s', replay_cancel.id),
            hint = 'Replays: select * from tidemark.replay_summary;';
    elsif job.finished_at is not null then
        raise exception using errcode = 'TM013', message = format('replay %s is over: %s at %s', job.id,
            case when job.cancelled_at is null then 'finished' else 'cancelled' end, job.finished_at);
    end if;
    update tidemark.replay_job j
    set cancelled_at = clock_timestamp(), cancelled_by = tidemark.login(), finished_at = clock_timestamp()
    where j.id = job.id;
    insert into tidemark.audit (action, object, reason, after)
    values ('replay_cancel', 'replay ' || job.id, replay_cancel.reason,
            jsonb_build_object('passed_seq', job.passed_seq, 'staged', job.staged));
    return (select count(*) from tidemark.pending p where p.replay_id = job.id);
end
$$;
comment on function tidemark.replay_cancel(bigint, text) is
    'Ends a replay where it stands. Returns how many of its events are staged already: they are still delivered, at '
    'most 1000, or five seconds of its rate; switch the route off to stop them too. Raises TM004, TM005, TM013 (the '
    'replay is over).';
grant execute on function tidemark.replay_cancel(bigint, text) to tidemark_admin;
