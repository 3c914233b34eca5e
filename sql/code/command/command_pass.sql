-- The life of a page of a partition, top to bottom, in one transaction: the commands' effects, their claims and
-- results, what was refused, and the cursor commit together.
create or replace function tidemark.command_pass(
    source text,
    shard integer,
    epoch bigint,
    lease interval,
    topic_id text,
    from_offset bigint,
    next_offset bigint,
    calls jsonb,
    way text default 'batch',
    behind bigint default null,
    since timestamptz default null)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    most constant integer := 50;
    topic constant text := substr(command_pass.source, length('kafka:') + 1);
    many constant integer := jsonb_array_length(calls);
    items constant jsonb[] := array(select e from jsonb_array_elements(calls) e);
    -- Where a record stands, the lease tells; the others are for the functions that look after what they say.
    known constant jsonb := jsonb_build_object('topic', topic, 'topic_id', command_pass.topic_id,
                                               'partition', command_pass.shard);
    unknown constant text[] := array['parked', 'dry_run', 'failed', 'login', 'replays', 'first_failed_at'];
    at_ record;
    gate text;
    service text;
    n integer := 0;
    place bigint := command_pass.from_offset;
    claims_count constant boolean := exists (select from tidemark.setting s
                                             where s.key = 'commands.shared_topic' and s.value = 'claimed');
    call jsonb;
    c tidemark.command;
    problem record;
    code text;
    message text;
    live jsonb[] := '{}';
    places integer[] := '{}';
    outcomes text[];
    statuses text[] := '{}';
    parked boolean := false;
    document json;
    summary jsonb;
begin
    perform tidemark.session_check('a command', 'otherwise a command would not see the claim of the one before it.');
    if many > most or way <> 'batch' and many <> 1 or way not in ('batch', 'alone', 'overdue')
        or next_offset < from_offset then
        raise exception using errcode = 'TM005',
            message = format('a pass of commands (%s) has %s records, from offset %s to %s', way, many, from_offset,
                             next_offset),
            hint = 'At most 50, in the order of their offsets; exactly one if it is alone or overdue.';
    end if;
    perform tidemark.lease_check('commands', command_pass.epoch, command_pass.source, command_pass.shard);
    select c.watermark_id::bigint as next, c.metadata ->> 'topic_id' as topic_id into at_
    from tidemark.worker_cursor c
    where c.worker = 'commands' and c.source = command_pass.source and c.shard = command_pass.shard;
    if at_.next is distinct from command_pass.from_offset or at_.topic_id is distinct from command_pass.topic_id then
        raise exception using errcode = 'TM012',
            message = format('partition %s of %s is at offset %s of topic %s, and the pass begins at %s of %s',
                             command_pass.shard, command_pass.source, at_.next, at_.topic_id, command_pass.from_offset,
                             command_pass.topic_id),
            hint = 'Nothing was written. Read the cursor again.';
    end if;
    gate := tidemark.closed_gate('commands');
    if gate is not null then
        return jsonb_build_object('worker', 'commands', 'source', command_pass.source, 'shard', command_pass.shard,
                                  'status', 'closed', 'detail', gate);
    end if;
    perform tidemark.flush_on_commit();

    while n < many loop
        call := items[n + 1];
        if call ?| unknown or not call @> known then
            call := call - unknown || known;
        end if;
        if (call ->> 'offset')::bigint between place and command_pass.next_offset - 1 then
            place := (call ->> 'offset')::bigint + 1;
        else
            raise exception using errcode = 'TM005',
                message = format('record %s of the pass has offset %s, and it is from %s to before %s', n + 1,
                                 coalesce(call ->> 'offset', 'null'), place, command_pass.next_offset),
                hint = 'Pass the records of a partition in the order of their offsets.';
        end if;
        if not call ? 'refused' and coalesce(call ->> 'via', '') not in ('acl', 'jws', 'claimed') then
            raise exception using errcode = 'TM005',
                message = format('a record from Kafka is not verified as %s', coalesce(call ->> 'via', 'null')),
                hint = 'via is acl, jws or claimed.';
        end if;
        -- Behind its gate nothing of a service happens, not even a rejection: the records stay in Kafka.
        if n = 0 or service is distinct from call ->> 'service' then
            service := call ->> 'service';
            gate := (select tidemark.closed_command(s.service) from tidemark.service s
                     where s.service = call ->> 'service');
        end if;
        exit when gate is not null;
        if (c.service, c.command, c.version::text)
           is distinct from (call ->> 'service', call ->> 'command', call ->> 'command_version') then
            c := tidemark.command_of(call);
        end if;
        code := call -> 'refused' ->> 'code';
        message := call -> 'refused' ->> 'message';
        if code is null and call ->> 'via' = 'claimed' and not claims_count then
            code := 'identity.signature_missing';
            message := 'the record has no signature, and the setting commands.shared_topic asks for one';
        elsif code is null then
            problem := tidemark.command_problem(call, c);
            code := problem.code;
            message := problem.message;
        end if;
        -- Until what was parked is committed, no session can release another of any service: see command_behind. So
        -- nothing that may take long comes after it.
        exit when parked and code is null and c.enabled;
        n := n + 1;
        if code is null and c.enabled and not c.dry_run then
            live := live || call;
            places := places || n;
            continue;
        end if;
        -- In the order of the partition: what came before takes effect, and is answered, first.
        if cardinality(places) > 0 then
            outcomes := tidemark.command_live(to_jsonb(live), places, way);
            statuses := statuses || outcomes;
            parked := parked or exists (select from unnest(outcomes) o where starts_with(o, 'failed_retryable|'));
            perform tidemark.command_reset();
            live := '{}';
            places := '{}';
        end if;
        if code is not null then
            if call ? 'event_id' then
                perform tidemark.command_reject(call - 'refused', code, message, null);
            else
                -- No result could tell what it answers.
                perform tidemark.command_letter(call - 'refused', code, message, null, 0, null);
            end if;
            statuses := statuses || format('rejected|%s|', code);
            continue;
        end if;
        document := case when c.enabled then tidemark.command_dry_run(call, way = 'overdue')
                         else tidemark.command_hold(call) end;
        parked := parked or not c.enabled and document ->> 'status' = 'failed_retryable';
        statuses := statuses || format('%s%s|%s|', case when c.enabled then 'dry_run: ' end, document ->> 'status',
                                       document ->> 'error_code');
    end loop;
    if cardinality(places) > 0 then
        statuses := statuses || tidemark.command_live(to_jsonb(live), places, way);
    end if;

    perform tidemark.command_reset(), tidemark.flush_on_commit();
    summary := jsonb_strip_nulls(jsonb_build_object(
        'worker', 'commands', 'source', command_pass.source, 'shard', command_pass.shard,
        'status', case when gate is null then 'ran' else 'waiting' end, 'detail', 'closed by ' || gate, 'rows', n,
        'next', case when n < many then (calls -> n ->> 'offset')::bigint else command_pass.next_offset end,
        'behind', command_pass.behind + many - n,
        'since', case when n < many then (calls -> n ->> 'record_at')::timestamptz else command_pass.since end,
        'result', (select jsonb_object_agg(s.status, s.n)
                   from (select split_part(s.status, '|', 1) as status, count(*) as n
                         from unnest(statuses) s (status) group by 1) s)));
    update tidemark.worker_cursor c
    set watermark_id = summary ->> 'next', decided_through = summary ->> 'next', last_run_at = clock_timestamp(),
        last_run_summary = summary, events_seen = c.events_seen + n, updated_at = clock_timestamp()
    where c.worker = 'commands' and c.source = command_pass.source and c.shard = command_pass.shard;
    perform tidemark.executor_beat(
        array[tidemark.executor_id('commands', command_pass.source, command_pass.shard)], 'ok', command_pass.lease);
    return summary || jsonb_build_object('outcomes', to_jsonb(statuses), 'letters', case
        when exists (select from unnest(statuses) s (status) where s.status not like 'processed|%') then (
            select coalesce(jsonb_agg(r."offset" order by r."offset"), '[]') from tidemark.command_record r
            where r.topic_id = command_pass.topic_id and r.partition = command_pass.shard and r.why = 'dead_letter'
              and r."offset" >= command_pass.from_offset and r."offset" < (summary ->> 'next')::bigint)
        else '[]' end);
end
$$;
comment on function tidemark.command_pass(
    text, integer, bigint, interval, text, bigint, bigint, jsonb, text, bigint, timestamptz) is
    'One pass over a partition of Kafka, under the lease epoch, which it renews: up to 50 records from from_offset, '
    'each a checked command, or one that is refused for its member refused {code, message}. What is refused gets its '
    'result or dead letter, a command in dry run is executed and rolled back, one that is off is parked, and live ones '
    'run as by tidemark.command_batch; then the cursor moves to next_offset. If one fails, nothing of the pass took '
    'effect, and the error has its position as column: the caller passes what is before it, then it alone (way alone '
    'records its failure; overdue: it did not come to an end, and is parked without being run), then the '
    'rest. At a record whose service''s gate is closed the pass ends: status waiting. It also ends, with status ran, '
    'before a command that would run after another was parked. closed: the gate of all commands. behind and since: '
    'how many records are behind these, and the time of the oldest. Resets the settings of the session. Returns '
    '{"status", "next", "rows", "result", …}, in outcomes of each record status|reason code|milliseconds, and in '
    'letters the offsets of those that have a dead letter. '
    'Raises TM005, TM006, TM007, TM009, TM011 (fenced), TM012 (the cursor is not at from_offset of this topic).';
grant execute on function tidemark.command_pass(
    text, integer, bigint, interval, text, bigint, bigint, jsonb, text, bigint, timestamptz) to tidemark_executor;
