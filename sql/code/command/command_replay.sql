-- public
create or replace function tidemark.command_replay(
    service text,
    since timestamptz default null,
    code text default null,
    failed boolean default false,
    dry_run boolean default false,
    reason text default null,
    most integer default 1000,
    after bigint default 0,
    out last bigint,
    out outcomes jsonb)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    limit_ constant integer := 10000;
    r record;
    n bigint;
    outcome text;
begin
    perform tidemark.session_check('a command', 'otherwise a command would not see the claim of the one before it.');
    if not exists (select from tidemark.service s where s.service = command_replay.service) then
        raise exception using errcode = 'TM004', message = format('there is no service "%s"', command_replay.service),
            hint = 'Services: select service from tidemark.service;';
    elsif coalesce(most, 0) not between 1 and limit_ then
        raise exception using errcode = 'TM005',
            message = format('most is %s, and must be from 1 to %s', coalesce(most::text, 'null'), limit_),
            hint = 'Ask for a part, and go on with after.';
    elsif not dry_run and coalesce(btrim(command_replay.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'commands are not replayed without a reason',
            hint = 'Count them first: dry_run => true.';
    end if;
    perform set_config('tidemark.reason', coalesce(command_replay.reason, ''), true);
    if not dry_run then
        -- What replays and what erases commands take turns: each takes many rows, and would wait for the other's, or
        -- park a payload that was erased meanwhile.
        perform from tidemark.service s where s.service = command_replay.service for no key update;
    end if;
    outcomes := '{}';
    if after = 0 then
        with due as (
            select p.service, p.idempotency_key from tidemark.command_parked p
            join tidemark.command_claim m using (service, idempotency_key)
            where p.service = command_replay.service and p.next_attempt_at < 'infinity'
              and (command_replay.since is null or m.processed_at >= command_replay.since)
              and (command_replay.code is null or m.error_code = command_replay.code)
            for no key update of p skip locked
        ), made as (
            update tidemark.command_parked p set next_attempt_at = least(p.next_attempt_at, clock_timestamp())
            from due d
            where not command_replay.dry_run and p.service = d.service and p.idempotency_key = d.idempotency_key
        )
        select count(*) into n from due;
        outcomes := case when n > 0 then jsonb_build_object('parked', n) else '{}' end;
    end if;
    for r in
        -- One that did not come from Kafka ages, too: its key may have been claimed and forgotten since.
        select x.id, x.call || jsonb_build_object('raw', jsonb_build_object(
                'key', encode(x.key, 'base64'), 'value', encode(x.value, 'base64'), 'headers', x.headers))
            || case when x.record_at is null
                   then jsonb_build_object('kept_at', coalesce(x.call -> 'kept_at', to_jsonb(x.recorded_at)))
                   else '{}' end as call
        from tidemark.command_record x
        left join tidemark.dead_letter l
            on x.why = 'dead_letter' and l.idempotency_key = tidemark.command_letter_key(x.id, x.replays)
        where x.service = command_replay.service and x.id > after and x.call is not null and x.replayed_at is null
          and (command_replay.since is null or x.recorded_at >= command_replay.since)
          and (x.why = 'dry_run' or l.resolved_at is null)
          and (command_replay.code is null or coalesce(l.error_code, x.document ->> 'error_code') = command_replay.code)
        order by x.id limit most
    loop
        last := r.id;
        outcome := tidemark.command_replay_one(r.call, r.id, failed, dry_run);
        -- Those were counted above.
        continue when outcome = 'parked';
        outcomes := outcomes || jsonb_build_object(outcome, coalesce((outcomes ->> outcome)::bigint, 0) + 1);
    end loop;
    if not dry_run and outcomes ?| array['runs', 'runs_again', 'parked'] then
        insert into tidemark.audit (action, object, reason)
        values ('command_replay', format('commands of %s: %s', command_replay.service, outcomes),
                command_replay.reason);
    end if;
end
$$;
comment on function tidemark.command_replay(
    text, timestamptz, text, boolean, boolean, text, integer, bigint) is
    'Replays commands of a service from the records that are kept of open dead letters and dry runs, in the order in '
    'which they were recorded, and makes parked commands due. since: recorded then or later; code: failed with this '
    'reason code; failed: those that are failed_terminal too, as a new attempt under the same claim. What was '
    'processed never runs again. What runs is parked, behind the others of its ordering key, and runs by '
    'tidemark.command_retry, while the gates are open. most limits how many records are read; go on with after => '
    'last until last is null. Returns how many had which outcome: see tidemark.command_replay_one. dry_run: only '
    'counts. tidemark.audit has the role and the reason. Raises TM004, TM005 (no reason), TM006, TM007.';
grant execute on function tidemark.command_replay(
    text, timestamptz, text, boolean, boolean, text, integer, bigint) to tidemark_admin;
