create or replace function tidemark.command_execute(call jsonb, command tidemark.command, again boolean, settle boolean)
returns json
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    -- The result becomes an event, and emit_all does not check its payload.
    most constant integer := 921600;
    deepest constant integer := 499; -- tidemark.event_check, less the level of the document
    started constant timestamptz := clock_timestamp();
    made constant text := 'command_' || command.id;
    -- The command's function has a search path of its own, and cannot read this one. So any SET of it within shows,
    -- also one that a SET LOCAL hides until the commit.
    path constant text := format('pg_catalog, pg_temp, "%s"', gen_random_uuid());
    settings text[];
    changed text;
    violated text;
    result jsonb;
    bytes integer;
begin
    -- It runs with the rights of its owner as long as it is what command_set made. Looked at for each command: the
    -- command before, which owns it, could have altered it.
    if not exists (select from tidemark.service s join pg_proc p on pg_get_userbyid(p.proowner) = s.role
                   where p.pronamespace = 'tidemark'::regnamespace and p.proname = made and p.prosecdef
                     and strpos(p.prosrc, 'command_settle') > 0 and s.service = command.service) then
        raise exception using errcode = 'undefined_function',
            message = format('tidemark.%s, which runs command %s, is missing or was changed', made, command.name),
            hint = 'Call tidemark.command_set for the command.';
    end if;
    -- An expression, since a query costs as much again to start. It is evaluated in this order.
    settings := array[
        set_config('tidemark.tenant', coalesce(call ->> 'tenant', ''), true),
        set_config('tidemark.producer', coalesce(call ->> 'producer', ''), true),
        set_config('tidemark.trace_id', coalesce(call ->> 'trace_id', ''), true),
        set_config('tidemark.event_id', coalesce(call ->> 'event_id', ''), true),
        set_config('tidemark.again', coalesce(again::text, ''), true),
        set_config('lock_timeout', greatest(1, extract(epoch from command.timeout) * 1000)::integer::text, true),
        set_config('search_path', path, true)];
    settings := tidemark.command_settings();
    execute format('select tidemark.%I($1, $2)::jsonb', made) into result using call -> 'payload', jsonb_strip_nulls(
        jsonb_build_object('event_id', call -> 'event_id', 'service', call -> 'service', 'command', call -> 'command',
                           'command_version', call -> 'command_version', 'idempotency_key', call -> 'idempotency_key',
                           'occurred_at', call -> 'occurred_at', 'trace_id', call -> 'trace_id',
                           'producer', call -> 'producer', 'tenant', call -> 'tenant'))
        || jsonb_build_object('context', coalesce(call -> 'context', '{}'));
    if coalesce(settle, tidemark.command_triggers()) then
        perform tidemark.command_settle(made);
    end if;
    -- Before anything else, since names would be looked up in that path.
    if pg_catalog.current_setting('search_path') operator(pg_catalog.<>) path then
        raise exception using errcode = 'insufficient_privilege',
            message = 'a function of a command has changed the search path of the session',
            hint = 'Give the function a SET clause.';
    end if;
    if tidemark.command_settings() <> settings then
        select split_part(s, ' ', 1) into changed
        from (select unnest(tidemark.command_settings()) except select unnest(settings)) c (s) order by s limit 1;
        perform set_config('exit_on_error', 'off', true);
        raise exception using errcode = 'insufficient_privilege',
            message = format('a function of a command has changed the setting %s of the session', changed),
            hint = 'Give the function a SET clause.';
    end if;
    bytes := octet_length(result::text);
    -- PostgreSQL times whole statements, not calls within one. The lock timeout ends waits for a lock; a function that
    -- is late in another way is taken back when it returns.
    if clock_timestamp() - started > command.timeout then
        raise exception using errcode = 'query_canceled', constraint = 'runtime.timeout',
            message = format('the command took %s ms, and may take %s ms',
                             round(extract(epoch from clock_timestamp() - started) * 1000),
                             round(extract(epoch from command.timeout) * 1000));
    elsif bytes > most then
        raise exception using errcode = 'program_limit_exceeded', constraint = 'runtime.result_too_large',
            message = format('the result has %s bytes, and may have %s', bytes, most);
    elsif bytes > 2 * deepest and jsonb_path_exists(
        result, format('strict $.**{%s} ? (@.type() == "object" || @.type() == "array")', deepest)::jsonpath) then
        raise exception using errcode = 'program_limit_exceeded', constraint = 'runtime.result_too_large',
            message = format('the result nests deeper than %s levels', deepest);
    elsif command.result_schema is not null then
        select string_agg(e, '; ' order by e) into violated
        from (select e from tidemark.contract_errors(coalesce(result, 'null'), command.result_schema) e limit 20) e;
        if violated is not null then
            raise exception using errcode = 'data_exception', constraint = 'runtime.result_invalid',
                message = 'the result does not fit its schema: ' || violated;
        end if;
    end if;
    return result::json;
end
$$;
comment on function tidemark.command_execute(jsonb, tidemark.command, boolean, boolean) is
    'Runs a command with the rights of its service, and returns its result. again: a command before it in this '
    'transaction has set deferred constraints immediate. settle: there are triggers of teams that can be deferred; '
    'null: it looks. Raises what the function raises; 57014 with the constraint runtime.timeout, 54000 with '
    'runtime.result_too_large, 22000 with runtime.result_invalid, 42501 for a changed search path or setting.';
