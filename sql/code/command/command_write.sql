create or replace function tidemark.command_write(
    service text, command text, version integer, changes jsonb, reason text)
returns setof tidemark.command
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    role name;
    was tidemark.command;
    row_ tidemark.command;
    past tidemark.command; -- was, or the one of its name that was deleted
    untested constant text[] := '{enabled,dry_run,description,unchecked}';
    label constant text := format('%s.%s/v%s', command_write.service, command_write.command, command_write.version);
    made text;
    body text;
    path text;
    problem text;
begin
    perform set_config('tidemark.reason', coalesce(command_write.reason, ''), true);
    -- One call at a time for a service: two would fail with "tuple concurrently updated".
    select s.role into role from tidemark.service s where s.service = command_write.service for update;
    if command_write.command is null or starts_with(command_write.command, command_write.service || '.') then
        raise exception using errcode = 'TM005',
            message = format('command "%s" begins with the name of its service', command_write.command),
            hint = format('Its name is what stands behind "%s.".', command_write.service);
    end if;
    select c.* into was from tidemark.command c
    where c.service = command_write.service and c.command = command_write.command
      and c.version = command_write.version;
    if not found then
        if num_nonnulls(changes ->> 'function', changes ->> 'statement') <> 1 then
            raise exception using errcode = 'TM005',
                message = format('command %s is new, and needs either function or statement', label),
                hint = 'For example {"function": "billing.charge_capture"}.';
        end if;
        insert into tidemark.command as c (service, command, version, function, statement)
        values (command_write.service, command_write.command, command_write.version, changes ->> 'function',
                changes ->> 'statement') returning c.* into row_;
    else
        row_ := was;
        if changes ->> 'function' is not null and was.function is null then
            row_.statement := null;
        elsif changes ->> 'statement' is not null and was.statement is null then
            row_.function := null;
        end if;
    end if;
    row_ := jsonb_populate_record(row_, changes);
    -- A test covers what runs, not the switches or the description.
    if not changes ? 'tested' and to_jsonb(row_) - untested is distinct from to_jsonb(was) - untested then
        row_.tested := null;
    end if;

    select m.what into problem from (
        select 'payload_schema: ' || tidemark.schema_problem(row_.payload_schema) as what
        union all
        select format('payload_schema: a payload is an object, and the schema has "type": %s',
                      coalesce((row_.payload_schema -> 'type')::text, 'nothing'))
        where row_.payload_schema -> 'type' is distinct from '"object"'
        union all
        select 'result_schema: ' || tidemark.schema_problem(row_.result_schema)
        union all
        select 'retry_policy cannot be read' where not tidemark.retry_policy_ok(row_.retry_policy)
        union all
        select format('parameter %s has the unknown type %s', p.key, p.value)
        from jsonb_each_text(row_.parameters) p where p.value is null or to_regtype(p.value) is null
        union all
        select format('parameter "%s" is no lower-case name', p.key)
        from jsonb_each_text(row_.parameters) p where p.key !~ '^[a-z_][a-z0-9_]*$'
        union all
        select case when row_.function is not null
                    then (select t.problem from tidemark.command_target(row_.function) t) end) m
    where m.what is not null limit 1;
    if problem is not null then
        raise exception using errcode = 'TM005', message = format('command %s: %s', label, problem),
            hint = 'See the columns of tidemark.command in docs/commands.md.';
    end if;
    row_.unchecked := tidemark.contract_unchecked(row_.payload_schema);
    past := was;
    if past.id is null then
        select p.* into past
        from tidemark.audit a cross join lateral jsonb_populate_record(null::tidemark.command, a.before) p
        where a.action = 'delete' and a.object = 'command ' || label order by a.id desc limit 1;
        row_.retention_from := past.retention_from;
        row_.retention_before := past.retention_before;
    end if;
    -- Claims keep the time that they were made with: records from before a longer retention are refused as before it.
    -- The time of a record may be a day ahead, and a pass that does not know of the change under way.
    if row_.retention > past.retention then
        row_.retention_before := case when past.retention_from > clock_timestamp() - past.retention
            then least(past.retention, past.retention_before) else past.retention end;
        row_.retention_from := clock_timestamp() + interval '2 days';
    end if;
    if row_.enabled and not row_.dry_run and (was.id is null or not was.enabled or was.dry_run) then
        if not tidemark.armed() then
            raise exception using errcode = 'TM008',
                message = format('command %s cannot be enabled and live: this installation is not live', label),
                hint = 'Leave dry_run on, or raise the stage: select tidemark.stage_set(''live'', ''why'');';
        elsif not exists (select from tidemark.outbound_route r
                          where r.enabled and not r.dry_run and r.domain in ('commands', '*')
                            and (r.type = '*' or tidemark.pattern_matches(r.type,
                                                                          'result.' || command_write.service))) then
            raise exception using errcode = 'TM008',
                message = format('command %s cannot be enabled and live: no live route takes its results', label),
                hint = format('tidemark route set results.%s --enabled --dry-run=false. The route is made by '
                              'tidemark command apply, or by tidemark.route_set, for commands/result.%1$s.',
                              command_write.service);
        end if;
    end if;

    update tidemark.command c
    set (schema_version, function, statement, parameters, payload_schema, result_schema, timeout, retry_policy,
         terminal, retention, retention_from, retention_before, when_disabled, enabled, dry_run, description, tested,
         unchecked)
      = row(row_.schema_version, row_.function, row_.statement, row_.parameters, row_.payload_schema,
            row_.result_schema, row_.timeout, row_.retry_policy, row_.terminal, row_.retention, row_.retention_from,
            row_.retention_before, row_.when_disabled, row_.enabled, row_.dry_run, row_.description, row_.tested,
            row_.unchecked)
    where c.id = row_.id;

    -- The service's role owns the function, so that what runs has its rights and no others, and cannot set a role. It
    -- cannot name its function: it has no rights in this schema.
    made := format('command_%s', row_.id);
    body := tidemark.command_body(row_);
    path := 'pg_catalog' || coalesce(', ' || (
        select format('%I', n.nspname)
        from tidemark.command_target(row_.function) t
        join pg_proc p on p.oid = t.function join pg_namespace n on n.oid = p.pronamespace), '') || ', pg_temp';
    if not exists (select from pg_proc p
                   where p.pronamespace = 'tidemark'::regnamespace and p.proname = made and p.prosrc = body
                     and p.prosecdef and p.proowner = (select r.oid from pg_roles r where r.rolname = role)
                     and p.proconfig = array['search_path=' || path]) then
        if exists (select from pg_proc p where p.pronamespace = 'tidemark'::regnamespace and p.proname = made) then
            execute format('drop function tidemark.%I(jsonb, jsonb)', made);
        end if;
        execute format('create function tidemark.%I(payload jsonb, context jsonb) returns json language plpgsql '
                       'volatile security definer set search_path = %s as %L', made, path, body);
        execute format('comment on function tidemark.%I(jsonb, jsonb) is %L', made,
                       format('Runs command %s. Made by tidemark.command_set.', label));
        execute format('revoke all on function tidemark.%I(jsonb, jsonb) from public', made);
        -- The service's role owns the function, so that what runs has its rights and no others, and cannot set a role.
        -- It cannot name its function, which it could otherwise alter: it has no rights in this schema.
        execute format('grant create on schema tidemark to %I', role);
        execute format('alter function tidemark.%I(jsonb, jsonb) owner to %I', made, role);
        execute format('revoke create on schema tidemark from %I', role);
    end if;

    if changes ? 'payload_schema' and cardinality(row_.unchecked) > 0 then
        raise notice 'of the payload schema of % SQL does not check: %', label, array_to_string(row_.unchecked, ', ')
            using hint = 'The daemon checks it in commands from Kafka; tidemark.command_run does not.';
    end if;
    if changes ? 'result_schema' and cardinality(tidemark.contract_unchecked(row_.result_schema)) > 0 then
        raise notice 'of the result schema of % Tidemark does not check: %', label,
            array_to_string(tidemark.contract_unchecked(row_.result_schema), ', ')
            using hint = 'tidemark command test checks it.';
    end if;
    return query select c.* from tidemark.command c where c.id = row_.id;
end
$$;
comment on function tidemark.command_write(text, text, integer, jsonb, text) is
    'The part of tidemark.command_set that runs with the rights of tidemark_owner.';
grant execute on function tidemark.command_write(text, text, integer, jsonb, text) to tidemark_admin;
