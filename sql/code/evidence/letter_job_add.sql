-- public
create or replace function tidemark.letter_job_add(
    action text,
    reason text default null,
    route text default null,
    source text default null,
    error_code text default null,
    dry_run boolean default false,
    rate double precision default null,
    out id bigint,
    out letters bigint)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    at constant timestamptz := clock_timestamp();
    wanted constant integer := (
        select r.id from tidemark.outbound_route r where r.route_code = letter_job_add.route);
begin
    if letter_job_add.route is not null and wanted is null then
        raise exception using errcode = 'TM004', message = format('there is no route "%s"', letter_job_add.route),
            hint = 'Routes: select route_code from tidemark.outbound_route;';
    elsif letter_job_add.action is null or letter_job_add.action not in ('replay', 'discard') then
        raise exception using errcode = 'TM005', message = format('a job has no action "%s"', letter_job_add.action),
            hint = 'Actions: replay and discard.';
    elsif wanted is null and letter_job_add.source is null then
        raise exception using errcode = 'TM005', message = 'a job needs a route or a source';
    elsif letter_job_add.source = 'commands' and letter_job_add.action = 'replay' then
        raise exception using errcode = 'TM005', message = 'dead letters of commands are not replayed by a job',
            hint = 'tidemark.command_replay runs them again as they were sent.';
    elsif letter_job_add.rate is not null and letter_job_add.action = 'discard' then
        raise exception using errcode = 'TM005', message = 'a job that discards dead letters has no rate';
    elsif not coalesce(dry_run, false) and coalesce(btrim(letter_job_add.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'a job needs a reason', hint = 'Or ask for a dry run.';
    end if;
    perform tidemark.rate_check(letter_job_add.rate, 'letters');
    letters := (
        select count(*) from tidemark.dead_letter l
        where l.resolved_at is null
          and (letter_job_add.route is null or l.route_id = wanted)
          and (letter_job_add.source is null or l.source = letter_job_add.source)
          and (letter_job_add.error_code is null or l.error_code = letter_job_add.error_code));
    if coalesce(dry_run, false) or letters = 0 then
        return;
    end if;
    -- Those that failed by the clock of before it was set back have failed so far, too.
    update tidemark.dead_letter l
    set first_failed_at = least(l.first_failed_at, at - interval '1 microsecond'),
        last_failed_at = at - interval '1 microsecond'
    where l.id = any (array(
        select o.id from tidemark.dead_letter o
        where o.resolved_at is null and o.last_failed_at >= at for update skip locked));
    insert into tidemark.letter_job as j (action, route_id, source, error_code, rate, letters, requested_at,
                                          requested_by, reason)
    values (letter_job_add.action, wanted, letter_job_add.source, letter_job_add.error_code, letter_job_add.rate,
            letter_job_add.letters, at, tidemark.login(), letter_job_add.reason)
    returning j.id into id;
    insert into tidemark.audit (action, object, reason, after)
    values ('letter_job_' || letter_job_add.action, 'letter_job ' || letter_job_add.id, letter_job_add.reason,
            jsonb_strip_nulls(jsonb_build_object('route', letter_job_add.route, 'source', letter_job_add.source,
                                                 'error_code', letter_job_add.error_code,
                                                 'rate', letter_job_add.rate,
                                                 'letters', letter_job_add.letters)));
end
$$;
comment on function tidemark.letter_job_add(text, text, text, text, text, boolean, double precision) is
    'Makes a job that replays or discards (action) the open dead letters of a route or source, with the error code '
    '(null: with any), that have failed so far. A daemon does it part by part, each in a transaction of its own '
    '(tidemark.letter_job_step), and goes on where it or another one stopped. rate: it tries at most so many letters a '
    'second again; null: as many as it can. Returns the job, and how many letters '
    'are chosen; id null: none, or a dry run. Progress: tidemark.letter_job_summary. Raises TM004, TM005.';
grant execute on function tidemark.letter_job_add(text, text, text, text, text, boolean, double precision)
    to tidemark_admin;
