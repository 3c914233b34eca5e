-- The life of a command, from top to bottom: gates, claim, execution, state, result. All of it is one transaction with
-- the effect. A command that fails takes the whole batch back: the caller halves the batch, down to the one that
-- fails, and records that one by tidemark.command_fail. Granted to no role: it believes what a call says of its
-- producer, its login, and whether it is parked or in dry run. tidemark.command_run, tidemark.command_retry_one and
-- tidemark.command_pass write these; of the producer the pass believes the daemon, which has checked the record.
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
    -- Set immediate by each command, they must be deferred again for the next one.
    deferring constant boolean := exists (select from pg_constraint d where d.condeferred);
    settling constant boolean := tidemark.command_triggers();
    made constant text := 'a deferrable constraint trigger was created meanwhile';
    lock_wait constant text := current_setting('lock_timeout');
    session constant text[] := tidemark.command_session();
    items jsonb[];
    n integer;
    parked bigint;
    retries bigint;
    call jsonb;
    c tidemark.command;
    fate text[];       -- of each position: claimed, behind (an earlier command of its key), or asked (before)
    documents json[];
    told text[];       -- the status of each document
    results json[];
    ended timestamptz[];
    began timestamptz;
    ran boolean := false;
    problem text;
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

    perform tidemark.command_gate_check(calls);
    items := array(select e from jsonb_array_elements(calls) e);

    -- Sorted, so that two batches cannot wait for each other in a circle. Of equal keys in one batch the first claims.
    with input as (
        select e.n, e.call, e.call ->> 'service' as service, e.call ->> 'idempotency_key' as idempotency_key,
               k.retention, e.call ? 'parked' as parked,
               row_number() over (partition by e.call ->> 'service', e.call ->> 'idempotency_key'
                                  order by e.n) as place,
               exists (select from tidemark.command_parked p
                       where p.service = e.call ->> 'service'
                         and p.key = coalesce(e.call ->> 'key', e.call ->> 'idempotency_key')) as behind
        from unnest(items) with ordinality e (call, n)
        join tidemark.command k on k.service = e.call ->> 'service' and k.command = e.call ->> 'command'
                               and k.version = (e.call ->> 'command_version')::integer
    ), claimed as (
        insert into tidemark.command_claim as m (
            service, idempotency_key, fingerprint, state, event_id, command, version, tenant, producer, via, login,
            topic_id, partition, "offset", processed_at, attempts, expires_at)
        select i.service, i.idempotency_key, decode(i.call ->> 'fingerprint', 'hex'),
               case when i.behind then 'failed_retryable' else 'processed' end, (i.call ->> 'event_id')::uuid,
               i.call ->> 'command', (i.call ->> 'command_version')::integer, i.call ->> 'tenant',
               i.call ->> 'producer', i.call ->> 'via', (i.call ->> 'login')::name, i.call ->> 'topic_id',
               (i.call ->> 'partition')::integer, (i.call ->> 'offset')::bigint, at,
               case when i.behind then 0 else 1 + coalesce((i.call ->> 'failed')::integer, 0) end, at + i.retention
        from input i where i.place = 1 and not i.parked
        order by i.service collate "C", i.idempotency_key collate "C"
        on conflict do nothing
        returning m.service, m.idempotency_key
    )
    -- By a hashed subplan: a join of what is estimated as few rows would compare each with each.
    select array_agg(case
        when i.parked then 'claimed'
        when i.place > 1 or (i.service, i.idempotency_key) not in (
            select m.service, m.idempotency_key from claimed m) then 'asked'
        when i.behind then 'behind' else 'claimed' end order by i.n),
        count(*) filter (where i.parked)
    into fate, parked
    from input i;
    if parked > 0 then
        -- A retry: the claim is there, and no other session may take it up.
        perform from tidemark.command_claim m
        join unnest(items) e on m.service = e ->> 'service' and m.idempotency_key = e ->> 'idempotency_key'
        join tidemark.command_parked p on p.service = m.service and p.idempotency_key = m.idempotency_key
        where e ? 'parked' and m.state = 'failed_retryable' for no key update of m, p;
        get diagnostics retries = row_count;
        if retries <> parked then
            raise exception using errcode = 'TM005', message = 'a command that is to be tried again is not parked',
                hint = 'Only tidemark.command_retry tries a command again.';
        end if;
    end if;

    -- One subtransaction for all of them: it tells which failed, and nothing of it stays.
    begin
        for i in 1..cardinality(items) loop
            continue when fate[i] <> 'claimed';
            n := i;
            call := items[i];
            if ran then
                if not settling and c.service <> call ->> 'service' and tidemark.command_triggers() then
                    raise serialization_failure using message = made;
                end if;
                perform tidemark.command_reset();
            end if;
            if (c.service, c.command, c.version::text)
               is distinct from (call ->> 'service', call ->> 'command', call ->> 'command_version') then
                c := tidemark.command_of(call);
            end if;
            began := clock_timestamp();
            results[i] := tidemark.command_execute(call, c, (again or ran) and deferring, settling);
            ended[i] := clock_timestamp();
            ran := true;
            documents[i] := tidemark.command_document(call, 'processed', null, null, ended[i], results[i],
                1 + coalesce((call ->> 'failed')::integer, 0));
            told[i] := 'processed';
        end loop;
        -- Of several commands the last has the blame; by itself it runs, and the one before it has the blame.
        problem := tidemark.command_session_problem(session);
        if problem is not null then
            raise insufficient_privilege using message = format('command %s %s', c.name, problem),
                hint = 'A function drops the temporary objects that it creates, and prepares no statements.';
        elsif ran and not settling and tidemark.command_triggers() then
            raise serialization_failure using message = made;
        end if;
    exception when query_canceled or assert_failure or others then
        get stacked diagnostics state = returned_sqlstate, message = message_text, violated = constraint_name,
            relation = table_name, attribute = column_name;
        -- The rollback has restored the settings, and keeps the prepared statements.
        perform tidemark.command_session_problem(session);
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
    end if;
    -- A function that asked for less must not have its effect acknowledged before it is durable.
    perform tidemark.flush_on_commit();
    -- The commands may have taken long. Once a gate is closed, nothing takes effect any more.
    if ran then
        perform tidemark.command_gate_check(calls);
    end if;

    update tidemark.command_claim m
    set state = 'processed', result = results[d.n], processed_at = ended[d.n], error_code = null, error_message = null,
        attempts = 1 + coalesce((d.call ->> 'failed')::integer, 0)
    from unnest(items, fate) with ordinality d (call, fate, n)
    where d.fate = 'claimed'
      and m.service = d.call ->> 'service' and m.idempotency_key = d.call ->> 'idempotency_key';

    for i in 1..cardinality(items) loop
        continue when fate[i] = 'claimed';
        call := items[i];
        if fate[i] = 'behind' then
            perform tidemark.command_park(call, at);
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
    'raised as it came. Raises TM009 where a gate is closed or a command is off, TM006, TM007.';
