-- public
-- Not a security definer: the operator makes the role with their own rights, if they have them.
create or replace function tidemark.service_set(service text, changes jsonb default '{}', reason text default null)
returns setof tidemark.service
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    role constant text := coalesce(
        (select s.role::text from tidemark.service s where s.service = service_set.service),
        changes ->> 'role', left('tidemark_owner', -5) || 'service_' || service_set.service);
    has_set_option constant boolean := current_setting('server_version_num')::integer >= 160000;
    make constant text := format('create role %I nologin', role);
    join_ constant text := format('grant %I to tidemark_owner', role);
    missing text[] := '{}';
begin
    perform tidemark.changes_check('service', service_set.changes, 'tidemark.service',
                                   array['service', 'created_at']);
    if octet_length(role) > 63 then
        raise exception using errcode = 'TM005',
            message = format('role "%s" has %s bytes, and must have at most 63', role, octet_length(role)),
            hint = 'Name a shorter one: {"role": …}.';
    end if;
    if service_set.service !~ '^[a-z][a-z0-9_-]{0,39}$' or service_set.service is null then
        raise exception using errcode = 'TM005',
            message = format('"%s" is no name of a service', coalesce(service_set.service, 'null')),
            hint = 'A lower-case letter, then letters, digits, "_", "-"; at most 40 characters.';
    end if;
    begin
        if not exists (select from pg_roles r where r.rolname = role) then
            missing := array[make, join_];
            begin
                execute make;
            exception when duplicate_object or unique_violation then
                null; -- an operator of another database of the cluster has made it meanwhile
            end;
        end if;
        -- To give the role the functions that run its commands takes the right to set it; to call them, its rights.
        if not (pg_has_role('tidemark_owner', role, 'usage')
                and pg_has_role('tidemark_owner', role, case when has_set_option then 'set' else 'member' end)) then
            missing := array[join_];
            execute join_;
        end if;
    exception when insufficient_privilege then
        raise exception using errcode = 'TM005',
            message = format('service %s needs the role %s, which %s may not make or grant', service_set.service, role,
                             current_user),
            hint = format('A role with CREATEROLE runs: %s; then call service_set again.',
                          array_to_string(missing, '; '));
    end;
    return query select s.* from tidemark.service_write(service_set.service, role, service_set.changes,
                                                        service_set.reason) s;
end
$$;
comment on function tidemark.service_set(text, jsonb, text) is
    'Registers a service, or changes the named columns of one. Makes its role, which cannot log in, and its gate '
    'commands.<service>.enabled, closed. Returns the row. Raises TM005 for an unknown column, a role that cannot '
    'serve, and where the caller may not make the role: the hint has the statements for a role with CREATEROLE.';
grant execute on function tidemark.service_set(text, jsonb, text) to tidemark_admin;
