-- The life of a page of a partition, top to bottom, in one transaction: the commands' effects, their claims and
-- results, what was refused, and the cursor commit together. Pages of several partitions share what a pass costs beside
-- its commands.
create or replace function tidemark.command_passes(passes jsonb, lease interval, way text default 'batch')
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    most constant integer := 50;
    pages constant jsonb[] := array(select e from jsonb_array_elements(passes) e);
    total constant integer := (select sum(jsonb_array_length(e -> 'calls')) from unnest(pages) e);
    unknown constant text[] := array['parked', 'dry_run', 'failed', 'login', 'replays', 'first_failed_at'];
    page jsonb;
    calls jsonb[]; -- of the page
    many integer;
    n integer;     -- of the page are passed
    place bigint;
    next bigint;
    -- Where a record stands, the lease tells; the others are for the functions that look after what they say.
    known jsonb;
    given jsonb[] := '{}'; -- of the pages so far
    gate text;
    asked boolean := false;
    service text;
    services text[] := '{}'; -- of the records so far
    call jsonb;
    c tidemark.command;
    digest text; -- of the schema of its payloads, if SQL checks that in part only
    problem record;
    code text;
    message text;
    live jsonb[] := '{}';
    ran jsonb[] := '{}'; -- the live ones so far
    places integer[] := '{}'; -- of the live ones among all that were given
    outcomes text[];
    statuses text[] := '{}';
    parked boolean := false;
    document json;
    before integer := 0; -- records of earlier pages
    summaries jsonb[] := '{}';
    begins bigint[] := '{}'; -- of each page: where the cursor was
    ends integer[] := '{}';  -- of each page: where its part of statuses ends
    summary jsonb;
    letters jsonb;
    answers jsonb[] := '{}';
begin
    perform set_config('tidemark.pooled', 'true', true);
    perform tidemark.session_check('a command', 'otherwise a command would not see the claim of the one before it.');
    if total > most or way <> 'batch' and (total <> 1 or cardinality(pages) <> 1)
        or way not in ('batch', 'alone', 'overdue') then
        raise exception using errcode = 'TM005',
            message = format('a pass of commands (%s) has %s records of %s partitions', way, total, cardinality(pages)),
            hint = 'At most 50; exactly one if it is alone or overdue.';
    end if;
    perform tidemark.command_passes_begin(pages);
    gate := tidemark.closed_gate('commands');
    if gate is not null then
        return (select jsonb_agg(jsonb_build_object('worker', 'commands', 'source', e -> 'source', 'shard',
                                                    e -> 'shard', 'status', 'closed', 'detail', gate) order by p.n)
                from unnest(pages) with ordinality p (e, n));
    end if;
    perform tidemark.flush_on_commit();

    foreach page in array pages loop
        calls := array(select e from jsonb_array_elements(page -> 'calls') e);
        many := cardinality(calls);
        n := 0;
        place := page ->> 'from';
        next := page ->> 'next';
        begins := begins || place;
        if next < place then
            raise exception using errcode = 'TM005',
                message = format('a pass of commands is from offset %s to %s', place, next),
                hint = 'next is the offset after its records.';
        end if;
        known := jsonb_build_object('topic', substr(page ->> 'source', length('kafka:') + 1),
                                    'topic_id', page -> 'topic_id', 'partition', (page ->> 'shard')::integer);
        if known = any (given) then
            raise exception using errcode = 'TM005',
                message = format('partition %s of %s is given twice', page ->> 'shard', page ->> 'source'),
                hint = 'Give one pass for each partition.';
        end if;
        given := given || known;
        while n < many loop
            call := calls[n + 1];
            if call ?| unknown or not call @> known then
                call := call - unknown || known;
            end if;
            if (call ->> 'offset')::bigint between place and next - 1 then
                place := (call ->> 'offset')::bigint + 1;
            else
                raise exception using errcode = 'TM005',
                    message = format('record %s of the pass has offset %s, and it is from %s to before %s', n + 1,
                                     coalesce(call ->> 'offset', 'null'), place, next),
                    hint = 'Pass the records of a partition in the order of their offsets.';
            end if;
            if not call ? 'refused' and coalesce(call ->> 'via', '') not in ('acl', 'jws', 'claimed') then
                raise exception using errcode = 'TM005',
                    message = format('a record from Kafka is not verified as %s', coalesce(call ->> 'via', 'null')),
                    hint = 'via is acl, jws or claimed.';
            end if;
            -- Behind its gate nothing of a service happens, not even a rejection: the records stay in Kafka.
            if not asked or service is distinct from call ->> 'service' then
                asked := true;
                service := call ->> 'service';
                gate := (select tidemark.closed_command(s.service) from tidemark.service s
                         where s.service = call ->> 'service');
            end if;
            exit when gate is not null;
            if (c.service, c.command, c.version::text)
               is distinct from (call ->> 'service', call ->> 'command', call ->> 'command_version') then
                c := tidemark.command_of(call);
                digest := case when c.unchecked is distinct from '{}' then md5(c.payload_schema::text) end;
            end if;
            -- By the schema of a moment ago, or by none. The daemon reads that of now soon, and judges again.
            if call ->> 'judged' <> digest then
                gate := format('the schema of %s, which the daemon has not read yet', c.name);
                asked := false;
                exit;
            end if;
            code := call -> 'refused' ->> 'code';
            message := call -> 'refused' ->> 'message';
            if code is null then
                problem := tidemark.command_problem(call, c);
                code := problem.code;
                message := problem.message;
            end if;
            -- Until what was parked is committed, no session can release another of any service: see command_behind.
            -- So nothing that may take long comes after it, of this partition or of another one.
            exit when parked and code is null and c.enabled;
            n := n + 1;
            if service <> all (services) then
                services := services || service;
            end if;
            if code is null and c.enabled and not c.dry_run then
                live := live || call;
                places := places || before + n;
                continue;
            end if;
            -- In the order of the partition: what came before takes effect, and is answered, first.
            if cardinality(places) > 0 then
                outcomes := tidemark.command_live(to_jsonb(live), places, way);
                statuses := statuses || outcomes;
                ran := ran || live;
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
            statuses := statuses || format('%s%s|%s|', case when c.enabled then 'dry_run: ' end,
                                           document ->> 'status', document ->> 'error_code');
        end loop;
        before := before + many;
        ends := ends || coalesce(ends[cardinality(ends)], 0) + n;
        call := calls[n + 1]; -- the first that is left
        summaries := summaries || jsonb_strip_nulls(jsonb_build_object(
            'worker', 'commands', 'source', page -> 'source', 'shard', known -> 'partition',
            'status', case when call is null or gate is null then 'ran' else 'waiting' end,
            'detail', case when call is not null then 'closed by ' || gate end,
            'rows', n, 'next', coalesce((call ->> 'offset')::bigint, next),
            'behind', (page ->> 'behind')::bigint + many - n,
            'since', coalesce(call ->> 'record_at', page ->> 'since')::timestamptz));
    end loop;
    if cardinality(places) > 0 then
        statuses := statuses || tidemark.command_live(to_jsonb(live), places, way);
        ran := ran || live;
    end if;

    perform tidemark.command_reset(), tidemark.flush_on_commit();
    for i in 1..cardinality(summaries) loop
        summary := summaries[i];
        known := given[i];
        n := summary -> 'rows';
        outcomes := statuses[ends[i] - n + 1:ends[i]];
        letters := '[]';
        if n > 0 then
            summary := summary || jsonb_build_object('result', (
                select jsonb_object_agg(s.status, s.n)
                from (select split_part(o, '|', 1) as status, count(*) as n from unnest(outcomes) o group by 1) s));
            if (summary -> 'result' ->> 'processed')::integer is distinct from n then
                letters := tidemark.command_letters_within(known ->> 'topic_id', (known -> 'partition')::integer,
                                                           begins[i], (summary ->> 'next')::bigint);
            end if;
        end if;
        summaries[i] := summary;
        answers := answers || (summary || jsonb_build_object('outcomes', outcomes, 'letters', letters));
    end loop;
    perform tidemark.command_passes_end(summaries, command_passes.lease);
    -- The last look at the gates comes after all commands, and after all that can wait: also for what was refused,
    -- parked or run dry.
    if cardinality(statuses) > 0 then
        perform tidemark.command_consumer_check();
        perform tidemark.command_gate_check(to_jsonb(ran));
        gate := (select min(tidemark.closed_command(s.service)) from tidemark.service s
                 where s.service = any (services));
        if gate is not null then
            raise exception using errcode = 'TM009', message = 'no command was passed: closed by ' || gate,
                hint = 'Gates: tidemark gate open GATE.';
        end if;
    end if;
    return to_jsonb(answers);
end
$$;
comment on function tidemark.command_passes(jsonb, interval, text) is
    'One pass over each of these partitions of Kafka, all in one transaction. A pass is {"source", "shard", "epoch": '
    'of the lease, which it renews, "topic_id", "from": offset where the cursor is, "next": offset where it goes, '
    '"calls", "behind", "since"}. calls are records, up to 50 in all, each a checked command, or one that is refused '
    'for its member refused {code, message}; behind and since: how many records are behind these, and the time of the '
    'oldest. What is refused gets its result or dead letter, a command in dry run is executed and rolled back, one '
    'that is off is parked, and live ones run as by tidemark.command_batch; then the cursors move. If one fails, '
    'nothing of any pass took effect, and the error has its position among all records as column: the caller passes '
    'what is before it, then it alone (way alone records its failure; overdue: it did not come to an end, and is '
    'parked without being run), then the rest. At a record whose service''s gate is closed the pass of its partition '
    'ends: status waiting; likewise at one whose payload the daemon has judged by another schema than that of now '
    '(member judged, its digest; without it this is not asked). A pass also ends, with status ran, before a command '
    'that would run after another was parked. closed: the gate of all commands. Resets the settings of the '
    'session. Returns of each pass {"status", '
    '"next", "rows", "result", …}, in outcomes of each record status|reason code|milliseconds, and in letters the '
    'offsets of those that have a dead letter. '
    'Raises TM005, TM006, TM007, TM009, TM011 (fenced), TM012 (a cursor is not at from of this topic).';
grant execute on function tidemark.command_passes(jsonb, interval, text) to tidemark_executor;
