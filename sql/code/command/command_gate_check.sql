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
            g.gate,
            case when k.id is null then format('%s.%s/v%s, which is not registered', e.call ->> 'service',
                                               e.call ->> 'command', e.call ->> 'command_version')
                 when not k.enabled then 'command ' || k.name || ', which is off'
                 when not e.call ? 'dry_run' and k.dry_run then 'command ' || k.name || ', which is in dry run'
                 when not e.call ? 'dry_run' and not armed then 'the stage' end) as reason
        from jsonb_array_elements(calls) with ordinality e (call, n)
        join (select d.service, tidemark.closed_command(d.service) as gate
              from (select distinct coalesce(a.call ->> 'service', '') as service
                    from jsonb_array_elements(calls) a (call)) d offset 0) g
            on g.service = coalesce(e.call ->> 'service', '')
        left join tidemark.command k
            on k.service = e.call ->> 'service' and k.command = e.call ->> 'command'
           and k.version = (e.call ->> 'command_version')::integer) f
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
