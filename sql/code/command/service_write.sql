create or replace function tidemark.service_write(service text, role name, changes jsonb, reason text)
returns setof tidemark.service
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    row_ tidemark.service;
    problem constant text := tidemark.service_role_problem(service_write.role);
begin
    perform set_config('tidemark.reason', coalesce(service_write.reason, ''), true);
    if problem is not null then
        raise exception using errcode = 'TM005', message = format('role %s %s', service_write.role, problem),
            hint = 'A service has a role of its own, which cannot log in and only executes the service''s functions.';
    end if;
    if exists (select from tidemark.service s
               where s.role = service_write.role and s.service <> service_write.service) then
        raise exception using errcode = 'TM005',
            message = format('role %s is the role of another service', service_write.role),
            hint = 'Name another: {"role": …}.';
    end if;
    insert into tidemark.service (service, role) values (service_write.service, service_write.role)
    on conflict do nothing;
    row_ := (select jsonb_populate_record(s, changes) from tidemark.service s
             where s.service = service_write.service for update);
    if row_.role <> service_write.role then
        raise exception using errcode = 'TM005',
            message = format('service %s has the role %s, and keeps it', row_.service, service_write.role),
            hint = 'Its commands belong to that role. Register another service.';
    end if;

    insert into tidemark.setting (key, value, description)
    values ('commands.' || service_write.service || '.enabled', 'false', 'Gate.') on conflict do nothing;
    insert into tidemark.worker (worker, source, handler, description)
    values ('commands', 'kafka', 'command', 'Commands of services.') on conflict do nothing;
    insert into tidemark.domain (domain, restricted, description)
    values ('commands', true, 'Results and dead letters of commands.') on conflict do nothing;
    insert into tidemark.event_type as t (domain, type, description)
    values ('commands', 'result.' || service_write.service, 'Results of the service''s commands.'),
           ('commands', 'dead_letter.' || service_write.service, 'Dead letters of the service''s commands.')
    on conflict (domain, type) do update set enabled = true, schema = null where not t.enabled or t.schema is not null;
    return query
    update tidemark.service s set unknown_command = row_.unknown_command, description = row_.description
    where s.service = service_write.service returning s.*;
end
$$;
comment on function tidemark.service_write(text, name, jsonb, text) is
    'The part of tidemark.service_set that runs with the rights of tidemark_owner.';
grant execute on function tidemark.service_write(text, name, jsonb, text) to tidemark_admin;
