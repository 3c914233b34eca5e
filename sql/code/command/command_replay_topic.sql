create or replace function tidemark.command_replay_topic(
    calls jsonb, service text, failed boolean, dry_run boolean, reason text)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    outcomes jsonb := '{}';
    call jsonb;
    outcome text;
begin
    perform tidemark.session_check('a command', 'otherwise a command would not see the claim of the one before it.');
    if not dry_run and coalesce(btrim(command_replay_topic.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'commands are not replayed without a reason';
    end if;
    perform set_config('tidemark.reason', coalesce(command_replay_topic.reason, ''), true);
    if not dry_run then
        -- In turns, as tidemark.command_replay.
        perform from tidemark.service s where s.service = command_replay_topic.service for no key update;
    end if;
    for call in select e from jsonb_array_elements(calls) with ordinality a (e, n) order by a.n loop
        continue when call ->> 'service' is distinct from command_replay_topic.service;
        outcome := case when call ? 'refused' then call -> 'refused' ->> 'code'
            else tidemark.command_replay_one(call - array['parked', 'dry_run', 'failed', 'login', 'replays'], null,
                                             failed, dry_run) end;
        outcomes := outcomes || jsonb_build_object(outcome, coalesce((outcomes ->> outcome)::bigint, 0) + 1);
    end loop;
    if not dry_run and outcomes ?| array['runs', 'runs_again', 'parked'] then
        insert into tidemark.audit (action, object, reason)
        values ('command_replay', format('commands of %s from their topic: %s', command_replay_topic.service, outcomes),
                command_replay_topic.reason);
    end if;
    return outcomes;
end
$$;
comment on function tidemark.command_replay_topic(jsonb, text, boolean, boolean, text) is
    'Replays commands of a service that the caller has read from their topic and checked, as for '
    'tidemark.command_passes; the others are left out. No cursor moves. Returns how many had which outcome: see '
    'tidemark.command_replay_one.';
grant execute on function tidemark.command_replay_topic(jsonb, text, boolean, boolean, text) to tidemark_admin;
