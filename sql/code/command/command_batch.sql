-- The life of a command, from top to bottom: claim, execution, state, result. All of it is one transaction with the
-- effect. The caller looks at the gates (tidemark.command_gate_check) before, and again as its last step: commands may
-- take long, and once a gate is closed nothing takes effect any more. A command that fails takes the whole batch back:
-- the caller halves the batch, down to the one that fails, and records that one by tidemark.command_fail. Granted to no
-- role: it believes what a call says of its producer, its login, and whether it is parked or in dry run.
-- tidemark.command_run, tidemark.command_retry_one and tidemark.command_passes write these; of the producer the pass
-- believes the daemon, which has checked the record.
create or replace function tidemark.command_batch(calls jsonb)
returns table ("position" integer, status text, document json)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    most constant integer := 50;
    at constant timestamptz := clock_timestamp();
    -- A command before this batch has set them immediate.
    again boolean := current_setting('tidemark.ran', true) = 'true';
    deferring boolean; -- there are deferred constraints
    settling boolean; -- null: one command alone looks when it has run
    made constant text := 'a deferrable constraint trigger was created meanwhile';
    lock_wait constant text := current_setting('lock_timeout');
    session constant text[] := tidemark.command_session();
    pooled constant boolean := current_setting('tidemark.pooled', true) = 'true'; -- the session is the daemon's
    items jsonb[];
    n integer;
    call jsonb;
    c tidemark.command;
    fate text[];       -- of each position: claimed, behind (an earlier command of its key), or asked (before)
    documents json[];
    told text[];       -- the status of each document
    results json[];
    ended timestamptz[];
    began timestamptz;
    ran boolean := false;
    state text;
    message text;
    violated text;
    relation text;
    attribute text;
    fault_kind text;
    code text;
begin
    if jsonb_typeof(calls) is distinct from 'array' or jsonb_array_length(calls) not between 1 and most then
        raise exception using errcode = 'TM005',
            message = format('a batch of commands has %s, and must have 1 to %s', case jsonb_typeof(calls)
                when 'array' then jsonb_array_length(calls) || ' commands' else 'no array' end, most),
            hint = 'Give an array of checked commands.';
    end if;
    perform tidemark.session_check('a command', 'otherwise a command would not see the claim of the one before it.');

    items := array(select e from jsonb_array_elements(calls) e);
    -- The look reads all constraints. When a command has run, no other session makes a trigger for a table that it has
    -- written, until the commit.
    if cardinality(items) > 1 then
        settling := tidemark.command_triggers();
    end if;

    fate := tidemark.command_claims_begin(items, at);
    if cardinality(fate) is distinct from cardinality(items) then
        -- One was deleted since the caller has looked: this says which.
        perform tidemark.command_gate_check(calls);
        raise serialization_failure using message = 'a command was deleted and registered again meanwhile';
    end if;

    -- One subtransaction for all of them: it tells which failed, and nothing of it stays.
    begin
        for i in 1..cardinality(items) loop
            continue when fate[i] <> 'claimed';
            if ran and c.service <> items[i] ->> 'service' then
                -- What the one before has left must be gone before the code of another service runs.
                perform tidemark.command_session_check(c.name, session);
                if settling is false and tidemark.command_triggers() then
                    raise serialization_failure using message = made;
                end if;
            end if;
            n := i;
            call := items[i];
            if ran then
                perform tidemark.command_reset();
            end if;
            if (c.service, c.command, c.version::text)
               is distinct from (call ->> 'service', call ->> 'command', call ->> 'command_version') then
                c := tidemark.command_of(call);
            end if;
            -- Set immediate by each command, they must be deferred again for the next one. Asked once: the query is
            -- planned anew each time.
            if deferring is null and (again or ran) then
                deferring := exists (select from pg_constraint d where d.condeferred);
            end if;
            began := clock_timestamp();
            results[i] := tidemark.command_execute(call, c, coalesce(deferring, false), settling);
            ended[i] := clock_timestamp();
            ran := true;
            documents[i] := tidemark.command_document(call, 'processed', null, null, ended[i], results[i],
                1 + coalesce((call ->> 'failed')::integer, 0));
            told[i] := 'processed';
        end loop;
        -- Of several commands the last has the blame; by itself it runs, and the one before it has the blame.
        perform tidemark.command_session_check(c.name, session);
        if ran and settling is false and tidemark.command_triggers() then
            raise serialization_failure using message = made;
        end if;
    exception when query_canceled or assert_failure or others then
        get stacked diagnostics state = returned_sqlstate, message = message_text, violated = constraint_name,
            relation = table_name, attribute = column_name;
        -- The rollback has restored the settings, and keeps the prepared statements.
        perform tidemark.command_session_problem(session);
        if pooled then
            perform pg_advisory_unlock_all(); -- they outlast the rollback, too
        end if;
        select f.kind, f.code into fault_kind, code from tidemark.command_failure(state, violated, c.terminal) f;
        if fault_kind = 'canceled' then
            -- By the statement_timeout, as a rule. It is the command's fault if this one had its time.
            if n is null or clock_timestamp() - began <= c.timeout then
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
            datatype = fault_kind, constraint = code, column = n::text,
            detail = format('Command %s of the batch, %s.%s; nothing of the batch took effect.', n, call ->> 'service',
                            call ->> 'command');
    end;
    perform set_config('lock_timeout', lock_wait, true), set_config('tidemark.tenant', '', true),
            set_config('tidemark.producer', '', true), set_config('tidemark.trace_id', '', true),
            set_config('tidemark.event_id', '', true), set_config('tidemark.again', '', true);
    if ran then
        perform set_config('tidemark.ran', 'true', true);
        if pooled then
            perform pg_advisory_unlock_all();
            unlisten *;
        end if;
    end if;
    -- A function that asked for less must not have its effect acknowledged before it is durable.
    perform tidemark.flush_on_commit();
    perform tidemark.command_claims_end(items, fate, results, ended);

    for i in 1..cardinality(items) loop
        continue when fate[i] = 'claimed';
        call := items[i];
        if fate[i] = 'behind' then
            perform tidemark.command_park(call, at, 0, null);
            documents[i] := tidemark.command_document(call, 'failed_retryable', null,
                'waits behind an earlier command of its key', at, null, 0);
        else
            documents[i] := tidemark.command_asked(call);
        end if;
        told[i] := documents[i] ->> 'status';
    end loop;
    -- A redelivered record has its result already.
    perform tidemark.command_publish('result', array_agg(d.call order by d.n), array_agg(d.doc::jsonb order by d.n))
    from unnest(items, documents, told) with ordinality d (call, doc, status, n)
    where d.status <> 'redelivered';
    return query select d.n::integer, d.status, d.doc from unnest(told, documents) with ordinality d (status, doc, n);
end
$$;
comment on function tidemark.command_batch(jsonb) is
    'Runs up to 50 checked commands in this transaction: claims their keys, runs each with the rights of its service, '
    'stores states and results, and emits the results. Returns for each position its status and document: processed, '
    'duplicate, failed_retryable (it waits behind an earlier command of its key), failed_terminal (the key was used '
    'for another command) or redelivered (the same record again: nothing is emitted). If one fails, nothing of the '
    'batch takes effect, and the error has its SQLSTATE, its reason code as constraint, what to do (retryable, '
    'operator, outage, terminal) as data type and its position as column; 57014 of a command that still had time is '
    'raised as it came. The caller looks at the gates before and after it (tidemark.command_gate_check). Raises TM006, '
    'TM007.';
