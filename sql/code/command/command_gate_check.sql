create or replace function tidemark.command_gate_check(calls jsonb[])
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    armed constant boolean := tidemark.armed();
    seen text[] := '{}';
    name text;
    call jsonb;
    c tidemark.command;
    closed text;
begin
    -- A batch has few commands, of which each is looked up once.
    foreach call in array calls loop
        name := concat(call ->> 'service', '.', call ->> 'command', '/v', call ->> 'command_version',
                       case when call ? 'dry_run' then ' dry' end);
        continue when name = any (seen);
        seen := seen || name;
        c := tidemark.command_of(call);
        closed := coalesce(
            tidemark.closed_command(call ->> 'service'),
            case when c.id is null then name || ', which is not registered'
                 when not c.enabled then 'command ' || c.name || ', which is off'
                 when not call ? 'dry_run' and c.dry_run then 'command ' || c.name || ', which is in dry run'
                 when not call ? 'dry_run' and not armed then 'the stage' end);
        if closed is not null then
            raise exception using errcode = 'TM009', message = 'no command ran: closed by ' || closed,
                hint = 'Gates: tidemark gate open GATE. Commands: tidemark.command_set(…, ''{"enabled": true}'').';
        end if;
    end loop;
end
$$;
comment on function tidemark.command_gate_check(jsonb[]) is
    'Raises TM009 if something keeps one of these checked commands from running: a gate, the stage, or that it is off, '
    'in dry run or not registered.';
