-- public
create or replace function tidemark.command_allow(
    service text, producer text, command text default null, version integer default null, tenants text[] default null,
    reason text default null)
returns setof tidemark.command_producer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform set_config('tidemark.reason', coalesce(command_allow.reason, ''), true);
    if not exists (select from tidemark.service s where s.service = command_allow.service) then
        raise exception using errcode = 'TM004', message = format('there is no service "%s"', command_allow.service),
            hint = 'Services: select service from tidemark.service;';
    elsif command_allow.command is not null and not exists (
        select from tidemark.command c where c.service = command_allow.service and c.command = command_allow.command
                                         and c.version = coalesce(command_allow.version, c.version)) then
        raise exception using errcode = 'TM004',
            message = format('service %s has no command "%s"%s', command_allow.service, command_allow.command,
                             ' of version ' || command_allow.version),
            hint = 'Commands: select name from tidemark.command;';
    end if;
    return query
    insert into tidemark.command_producer as p (service, producer, command, version, tenants)
    values (command_allow.service, command_allow.producer, command_allow.command, command_allow.version,
            command_allow.tenants)
    on conflict (service, producer, command, version) do update set tenants = excluded.tenants
    returning p.*;
end
$$;
comment on function tidemark.command_allow(text, text, text, integer, text[], text) is
    'Allows a producer to ask for the commands of a service: for all, or for one, or for one version. tenants: those '
    'for which it may ask; with "*" all, and none; null: only commands without a tenant; empty: nothing. Again for the '
    'same producer and command: sets the tenants. Raises TM004 for an unknown service or command.';
grant execute on function tidemark.command_allow(text, text, text, integer, text[], text) to tidemark_admin;
