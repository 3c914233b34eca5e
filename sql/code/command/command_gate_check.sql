create or replace function tidemark.command_gate_check(calls jsonb)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    armed constant boolean := tidemark.armed();
    closed text;
begin
    select f.reason into closed from (
        select e.n, coalesce(
            tidemark.closed_command(coalesce(e.service, '')),
            case when k.id is null then format('%s.%s/v%s, which is not registered', e.service, e.command, e.version)
                 when not k.enabled then 'command ' || k.name || ', which is off'
                 when e.live and k.dry_run then 'command ' || k.name || ', which is in dry run'
                 when e.live and not armed then 'the stage' end) as reason
        -- A batch has few commands, of which each is looked up once.
        from (select a.call ->> 'service' as service, a.call ->> 'command' as command,
                     a.call ->> 'command_version' as version, not a.call ? 'dry_run' as live, min(a.n) as n
              from jsonb_array_elements(calls) with ordinality a (call, n) group by 1, 2, 3, 4) e
        left join tidemark.command k
            on k.service = e.service and k.command = e.command and k.version = e.version::integer) f
    where f.reason is not null order by f.n limit 1;
    if closed is not null then
        raise exception using errcode = 'TM009', message = 'no command ran: closed by ' || closed,
            hint = 'Gates: tidemark gate open GATE. Commands: tidemark.command_set(…, ''{"enabled": true}'').';
    end if;
end
$$;
comment on function tidemark.command_gate_check(jsonb) is
    'Raises TM009 if something keeps one of these checked commands from running: a gate, the stage, or that it is off, '
    'in dry run or not registered.';
