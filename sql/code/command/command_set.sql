-- public
-- Not a security definer: the operator grants the function to the service's role with their own rights.
create or replace function tidemark.command_set(
    service text, command text, version integer, changes jsonb default '{}', reason text default null)
returns setof tidemark.command
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    role constant name := (select s.role from tidemark.service s where s.service = command_set.service);
    target record;
    wanted text[];
begin
    if role is null then
        raise exception using errcode = 'TM004', message = format('there is no service "%s"', command_set.service),
            hint = 'Services: select service from tidemark.service; new ones: tidemark.service_set.';
    end if;
    perform tidemark.changes_check('command', command_set.changes, 'tidemark.command',
                                   array['id', 'service', 'command', 'version', 'name', 'unchecked', 'retention_from',
                                         'retention_before']);
    if changes ->> 'function' is not null then
        select t.*, p.oid::regprocedure::text as signature, quote_ident(n.nspname) as schema, n.oid as schema_id
        into target
        from tidemark.command_target(changes ->> 'function') t
        left join pg_proc p on p.oid = t.function left join pg_namespace n on n.oid = p.pronamespace;
        if target.problem is not null then
            raise exception using errcode = 'TM005',
                message = format('command %s.%s/v%s: %s', command_set.service, command_set.command, command_set.version,
                                 target.problem),
                hint = 'function is schema.function, taking (payload jsonb) or (payload jsonb, context jsonb).';
        end if;
        wanted := array_remove(array[
            case when not has_schema_privilege(role, target.schema_id, 'usage')
                then format('grant usage on schema %s to %I', target.schema, role) end,
            case when not has_function_privilege(role, target.function, 'execute')
                then format('grant execute on function %s to %I', target.signature, role) end], null);
        begin
            for i in 1..cardinality(wanted) loop
                execute wanted[i];
            end loop;
        exception when insufficient_privilege then
            null;
        end;
        if not has_schema_privilege(role, target.schema_id, 'usage')
            or not has_function_privilege(role, target.function, 'execute') then
            raise exception using errcode = 'TM005',
                message = format('%s may not execute %s, and %s may not grant it', role, target.signature,
                                 current_user),
                hint = format('The owner of the function runs: %s; then call command_set again.',
                              array_to_string(wanted, '; '));
        end if;
    end if;
    return query select c.* from tidemark.command_write(command_set.service, command_set.command, command_set.version,
                                                        command_set.changes, command_set.reason) c;
end
$$;
comment on function tidemark.command_set(text, text, integer, jsonb, text) is
    'Registers a command of a service, or changes the named columns of one: tidemark.command_set(''billing'', '
    '''charge.capture'', 1, ''{"function": "billing.charge_capture", "payload_schema": {…}}''). A new command is off '
    'and in dry run. Grants the function to the service''s role, and makes tidemark.command_<id>, which runs it with '
    'the rights of that role. Returns the row; a notice names the keywords of payload_schema that SQL does not check. '
    'Raises TM004 (unknown service), TM005 (an unknown column, a function that cannot serve or that the caller may '
    'not grant, an unreadable schema, statement or policy), TM008 (it would be live where the installation is not, or '
    'without a live route for its results).';
grant execute on function tidemark.command_set(text, text, integer, jsonb, text) to tidemark_admin;
