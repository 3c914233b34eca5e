-- public
create or replace function tidemark.command_delete(service text, command text, version integer, reason text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    label constant text := format('%s.%s/v%s', command_delete.service, command_delete.command, command_delete.version);
    c tidemark.command;
    problem text;
    advice text;
begin
    -- As tidemark.command_write; and a session that parks the command has a lock that conflicts with the second.
    perform from tidemark.service s where s.service = command_delete.service for update;
    select k.* into c from tidemark.command k
    where k.service = command_delete.service and k.command = command_delete.command
      and k.version = command_delete.version for update;
    if not found then
        raise exception using errcode = 'TM004', message = format('there is no command %s', label),
            hint = 'Commands: select name from tidemark.command;';
    end if;
    select p.problem, p.advice into problem, advice from (
        select 'it is on', 'Switch it off first: tidemark command disable ' || c.name where c.enabled
        union all
        select format('%s is parked', p.idempotency_key),
               format('Let it run, or give it up: tidemark command discard %s --service %s', p.idempotency_key,
                      c.service)
        from (select p.idempotency_key from tidemark.command_parked p
              where p.service = c.service and p.call ->> 'command' = c.command
                and p.call ->> 'command_version' = c.version::text order by p.position limit 1) p
        union all
        select 'it has open dead letters',
               'Replay or discard them, which is not possible later: tidemark dead-letter list --source commands'
        from (select from tidemark.dead_letter l
              where l.resolved_at is null and l.source = 'commands' and l.event_snapshot ->> 'service' = c.service
                and l.event_snapshot ->> 'command' = c.command
                and l.event_snapshot ->> 'command_version' = c.version::text limit 1) l
        union all
        select format('the allowlist names it, for producer %s', a.producer),
               format('Take the row back: select tidemark.command_disallow(%L, %L, %L, %L);', a.service, a.producer,
                      a.command, a.version)
        from tidemark.command_producer a
        where a.service = c.service and a.command = c.command
          and (a.version = c.version
               or a.version is null and not exists (
                   select from tidemark.command k
                   where k.service = c.service and k.command = c.command and k.version <> c.version))
        ) p (problem, advice)
    limit 1;
    perform tidemark.deletion('command', c.name, command_delete.reason, problem, advice);
    delete from tidemark.command k where k.id = c.id;
    execute format('drop function if exists tidemark.%I(jsonb, jsonb)', 'command_' || c.id);
    perform tidemark.finding_close('command_circuit', c.name);
end
$$;
comment on function tidemark.command_delete(text, text, integer, text) is
    'Deletes a version of a command that is off, and the function tidemark.command_<id>; what is asked of it from then '
    'on is rejected. Its claims stay until their retention is over: a key that was used stays used. Raises TM004, '
    'TM005 (no reason; or it is on, or parked commands, open dead letters or rows of the allowlist name it).';
grant execute on function tidemark.command_delete(text, text, integer, text) to tidemark_admin;
