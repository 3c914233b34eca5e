-- The life of commands, from top to bottom: claim, execution, state, result. All of it is one transaction with the
-- effects. A command that fails takes all of them back: the caller halves them, down to the one that fails, and records
-- that one by tidemark.command_fail. Granted to no role: it believes what a call says of its producer, its login, and
-- whether it is parked or in dry run. Its callers have asked for the gates.
create or replace function tidemark.command_effects(
    calls jsonb[], places integer[] default null, out told text[], out documents json[], out took numeric[])
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    short constant integer := 900; -- too short for what tidemark.command_result_check refuses without a schema
    at constant timestamptz := clock_timestamp();
    -- A command before these has set them immediate.
    again boolean := current_setting('tidemark.ran', true) = 'true';
    -- Set immediate by each command, they must be deferred again for the next one.
    deferring boolean;
    settling boolean;
    created constant text := 'a deferrable constraint trigger was created meanwhile';
    lock_wait constant text := current_setting('lock_timeout');
    watch constant text := current_setting('client_connection_check_interval');
    session constant text[] := tidemark.command_session();
    -- The functions of commands have search paths of their own, and cannot read this one. So any SET of it within
    -- shows, also one that a SET LOCAL hides until the commit.
    path constant text := format('pg_catalog, pg_temp, "%s"', gen_random_uuid());
    fate text[];       -- of each: claimed, behind (an earlier command of its key), or asked (before)
    runs integer[] := '{}'; -- which are claimed; of these, in the same order:
    live jsonb[] := '{}';
    ids integer[] := '{}';  -- their commands
    payloads jsonb[] := '{}';
    contexts jsonb[] := '{}';
    query text := 'select (case c.id';
    results json[] := '{}';
    asked jsonb[] := '{}';  -- whose results are published
    answers jsonb[] := '{}';
    begun timestamptz[] := '{}';
    ended timestamptz[] := '{}';
    next_ refcursor;
    i integer := 0;
    n integer;
    call jsonb;
    c tidemark.command;
    made text;
    before text;
    patience text;
    settings text[];
    result jsonb;
    answer text;
    changed text;
    problem text;
    state text;
    message text;
    violated text;
    relation text;
    attribute text;
    fault_kind text;
    code text;
begin
    select t.deferring, t.settling into deferring, settling from tidemark.command_triggers() t;
    fate := tidemark.command_claims_begin(calls, at);
    for i in 1..cardinality(calls) loop
        continue when fate[i] <> 'claimed';
        call := calls[i];
        runs := runs || i;
        live := live || call;
        payloads := payloads || (call -> 'payload');
        contexts := contexts || (jsonb_strip_nulls(jsonb_build_object(
            'event_id', call -> 'event_id', 'service', call -> 'service', 'command', call -> 'command',
            'command_version', call -> 'command_version', 'idempotency_key', call -> 'idempotency_key',
            'occurred_at', call -> 'occurred_at', 'trace_id', call -> 'trace_id', 'producer', call -> 'producer',
            'tenant', call -> 'tenant')) || jsonb_build_object('context', coalesce(call -> 'context', '{}')));
    end loop;

    -- One subtransaction for all of them: it tells which failed, and nothing of it stays.
    begin
        foreach n in array runs loop
            call := calls[n];
            i := i + 1;
            if i = 1 or (c.service, c.command, c.version::text)
               is distinct from (call ->> 'service', call ->> 'command', call ->> 'command_version') then
                c := tidemark.command_of(call);
            end if;
            if c.id <> all (ids) then
                -- It runs with the rights of its owner as long as it is what command_set made.
                if not exists (
                    select from tidemark.service s join pg_proc p on pg_get_userbyid(p.proowner) = s.role
                    where p.pronamespace = 'tidemark'::regnamespace and p.proname = 'command_' || c.id
                      and p.prosecdef and strpos(p.prosrc, 'command_settle') > 0 and s.service = c.service) then
                    raise exception using errcode = 'undefined_function',
                        message = format('tidemark.command_%s, which runs command %s, is missing or was changed', c.id,
                                         c.name),
                        hint = 'Call tidemark.command_set for the command.';
                end if;
                query := format('%s when %s then tidemark.command_%2$s(c.payload, c.context)', query, c.id);
            end if;
            ids := ids || c.id;
        end loop;
        if i > 0 then
            -- Run as far as one command at a time: a statement for each would be planned each time.
            open next_ for execute query || ' end)::jsonb from unnest($1, $2, $3) c (id, payload, context)'
                using ids, payloads, contexts;
        end if;
        i := 0;
        while i < cardinality(runs) loop
            i := i + 1;
            n := runs[i];
            call := calls[n];
            if i = 1 or c.id <> ids[i] then
                if i > 1 and not settling and c.service <> call ->> 'service'
                    and (select t.settling from tidemark.command_triggers() t) then
                    raise serialization_failure using message = created;
                end if;
                select k.* into c from tidemark.command k where k.id = ids[i];
                made := 'command_' || c.id;
                patience := set_config('lock_timeout',
                    greatest(1, extract(epoch from c.timeout) * 1000)::integer::text, true);
            end if;
            if i > 1 then
                -- Also what a SET LOCAL hides until the commit, and settings of which Tidemark has never heard.
                reset all;
            end if;
            -- Before anything else, since names would be looked up in the session's path.
            changed := pg_catalog.set_config('search_path', path, true);
            -- As one value, which costs less than a statement.
            changed := concat(
                set_config('lock_timeout', patience, true), set_config('client_connection_check_interval', watch, true),
                set_config('tidemark.ran', 'true', true),
                set_config('tidemark.again', case when (again or i > 1) and deferring then 'true' end, true),
                set_config('tidemark.tenant', call ->> 'tenant', true),
                set_config('tidemark.producer', call ->> 'producer', true),
                set_config('tidemark.trace_id', call ->> 'trace_id', true),
                set_config('tidemark.event_id', call ->> 'event_id', true));
            -- After the first reset they are those that the session began with, and the command's lock_timeout.
            if i <= 2 or made is distinct from before then
                settings := tidemark.command_settings();
                before := made;
            end if;
            begun := begun || clock_timestamp();
            fetch next_ into result;
            if settling then
                perform tidemark.command_settle(made);
            end if;
            -- Before anything else, since names would be looked up in that path.
            if pg_catalog.current_setting('search_path') operator(pg_catalog.<>) path then
                raise exception using errcode = 'insufficient_privilege',
                    message = 'a function of a command has changed the search path of the session',
                    hint = 'Give the function a SET clause.';
            end if;
            ended := ended || clock_timestamp();
            if tidemark.command_settings() <> settings then
                select split_part(s, ' ', 1) into changed
                from (select unnest(tidemark.command_settings()) except select unnest(settings)) c (s)
                order by s limit 1;
                perform set_config('exit_on_error', 'off', true);
                raise exception using errcode = 'insufficient_privilege',
                    message = format('a function of a command has changed the setting %s of the session', changed),
                    hint = 'Give the function a SET clause.';
            end if;
            -- PostgreSQL times whole statements, not calls within one. The lock timeout ends waits for a lock; a
            -- function that is late in another way is taken back when it returns.
            if ended[i] - begun[i] > c.timeout then
                raise exception using errcode = 'query_canceled', constraint = 'runtime.timeout',
                    message = format('the command took %s ms, and may take %s ms',
                                     round(extract(epoch from ended[i] - begun[i]) * 1000),
                                     round(extract(epoch from c.timeout) * 1000));
            end if;
            answer := result::text;
            results := results || answer::json;
            -- Of a short one without a schema there is nothing to check.
            if octet_length(answer) > short or c.result_schema is not null then
                perform tidemark.command_result_check(result, octet_length(answer), c.result_schema);
            end if;
        end loop;
        -- Of several commands the last has the blame; by itself it runs, and the one before it has the blame.
        problem := tidemark.command_session_problem(session);
        if problem is not null then
            raise insufficient_privilege using message = format('command %s %s', c.name, problem),
                hint = 'A function drops the temporary objects that it creates, and prepares no statements.';
        elsif i > 0 and not settling and (select t.settling from tidemark.command_triggers() t) then
            raise serialization_failure using message = created;
        elsif i > 0 then
            close next_;
        end if;
    exception when query_canceled or assert_failure or others then
        get stacked diagnostics state = returned_sqlstate, message = message_text, violated = constraint_name,
            relation = table_name, attribute = column_name;
        -- The rollback has restored the settings, and keeps the prepared statements.
        perform tidemark.command_session_problem(session);
        select f.kind, f.code into fault_kind, code from tidemark.command_failure(state, violated, c.terminal) f;
        if fault_kind = 'canceled' then
            -- By the statement_timeout, as a rule. It is the command's fault if this one had its time.
            if n is null or clock_timestamp() - begun[i] <= c.timeout then
                -- Without the fields, which may be a function's: they would pass for the ones below.
                raise exception using errcode = state, message = message;
            end if;
            fault_kind := 'retryable';
            code := 'runtime.timeout';
            message := format('the command did not end within %s ms',
                              round(extract(epoch from c.timeout) * 1000));
        end if;
        -- Fields of their own, not the text, tell the caller what failed, and how.
        raise exception using errcode = state,
            message = tidemark.command_error_text(state, code, message, violated, relation, attribute),
            datatype = fault_kind, constraint = code, column = coalesce(places[n], n)::text,
            detail = format('Command %s of the batch, %s.%s; nothing of the batch took effect.', n, call ->> 'service',
                            call ->> 'command');
    end;
    -- The search path too, if settings were reset: that overrides the one that this function would give back.
    changed := concat(
        set_config('search_path', 'pg_catalog, pg_temp', true), set_config('lock_timeout', lock_wait, true),
        set_config('tidemark.again', '', true), set_config('tidemark.tenant', '', true),
        set_config('tidemark.producer', '', true), set_config('tidemark.trace_id', '', true),
        set_config('tidemark.event_id', '', true));
    -- A function that asked for less must not have its effect acknowledged before it is durable.
    perform tidemark.flush_on_commit();
    -- The commands may have taken long. Once a gate is closed, nothing takes effect any more.
    if i > 0 then
        perform tidemark.command_gate_check(calls);
        perform tidemark.command_claims_end(live, results, ended);
    end if;

    told := array_fill('processed'::text, array[cardinality(calls)]);
    documents := array_fill(null::json, array[cardinality(calls)]);
    took := array_fill(null::numeric, array[cardinality(calls)]);
    for i in 1..cardinality(runs) loop
        call := calls[runs[i]];
        documents[runs[i]] := tidemark.command_document(call, 'processed', null, null, ended[i], results[i],
            1 + coalesce((call ->> 'failed')::integer, 0));
        took[runs[i]] := round(1000 * extract(epoch from ended[i] - begun[i]), 3);
    end loop;
    for n in 1..cardinality(calls) loop
        call := calls[n];
        if fate[n] = 'behind' then
            perform tidemark.command_park(call, at);
            documents[n] := tidemark.command_document(call, 'failed_retryable', null,
                'waits behind an earlier command of its key', at, null, 0);
            told[n] := 'failed_retryable';
        elsif fate[n] = 'asked' then
            documents[n] := tidemark.command_asked(call);
            told[n] := documents[n] ->> 'status';
        end if;
        -- A redelivered record has its result already.
        if told[n] <> 'redelivered' then
            asked := asked || call;
            answers := answers || documents[n]::jsonb;
        end if;
    end loop;
    perform tidemark.command_publish('result', asked, answers);
end
$$;
comment on function tidemark.command_effects(jsonb[], integer[]) is
    'Runs checked commands in this transaction: claims their keys, runs each with the rights of its service, stores '
    'states and results, and emits the results. told: what became of each: processed, duplicate, failed_retryable (it '
    'waits behind an earlier command of its key), failed_terminal (the key was used for another command) or '
    'redelivered (the same record again: nothing is emitted). documents: its answer. took: ms, if it ran. If one '
    'fails, nothing of any takes effect, and the error has its SQLSTATE, its reason code as constraint, what to do '
    '(retryable, operator, outage, terminal) as data type and its position as column, or that which places has for '
    'it; 57014 of a command that still had time is raised as it came. Raises TM009 where a gate has closed meanwhile '
    'or a command is off.';
