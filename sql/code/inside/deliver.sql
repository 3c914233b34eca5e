-- Not a security definer, as tidemark.target_call is not.
create or replace function tidemark.deliver(
    route tidemark.outbound_route,
    left_over bigint[],
    suspects integer[],
    errors integer[],
    fresh int8multirange,
    small boolean,
    path text,
    closed text[],
    until timestamptz,
    out results tidemark.result[],
    out fallbacks integer)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    most constant integer := 1000;
    -- A single suspect of 1,000 is found with two more time-outs, and without more than 64 subtransactions a pass.
    parts constant integer := 32;
    max_bytes constant bigint := tidemark.page_bytes();
    aim constant interval := least(deliver.route.timeout / 4, interval '500 milliseconds');
    old constant integer := cardinality(deliver.left_over);
    numbers constant bigint[] := deliver.left_over || tidemark.multirange_numbers(deliver.fresh);
    n constant integer := cardinality(numbers);
    sizes constant integer[] := tidemark.event_sizes(case when small then deliver.left_over else numbers end);
    statement text;
    size integer := 100;
    bytes bigint;
    stack integer[];
    first integer;
    last integer;
    stop integer;
    done integer := 0;
    began timestamptz;
    took interval;
    called record;
    transient boolean;
    delay interval;
    again integer := 0;
    odd int8multirange := '{}';
    waits bigint;
    gate text;
    code text;
    message text;
begin
    results := '{}';
    fallbacks := 0;
    begin
        statement := tidemark.delivery_statement(deliver.route, false);
    exception when undefined_function or undefined_table or invalid_parameter_value or feature_not_supported then
        get stacked diagnostics code = returned_sqlstate, message = message_text;
        results := array(
            select row(deliver.route.id, f.fresh, 'failed', code, message, range_agg(int8range(f.seq, f.seq + 1)),
                       0)::tidemark.result
            from (select p.seq, p.place > old from unnest(numbers) with ordinality p (seq, place)) f (seq, fresh)
            group by f.fresh);
        return;
    end;

    <<waves>>
    while done < n loop
        -- A gate or a route that was closed since the claim takes the batch back, also what this
        -- transaction has done so far: nothing of it was delivered yet.
        gate := tidemark.closed_switch(deliver.route.worker, array[deliver.route.id], deliver.closed);
        if gate is not null then
            raise exception using errcode = 'TM009', message = gate;
        end if;

        -- The next wave: as many as a target of this pace takes in a moment, no more than fit into memory, fewer where
        -- one of them may have taken too long. Those left over are not mixed with others.
        first := done + 1;
        stop := least(case when first <= old then old else n end, first + size - 1);
        last := case when small and first > old then stop else first end;
        bytes := sizes[first];
        while last < stop and bytes + sizes[last + 1] <= max_bytes
            and last - first + 1
                < greatest(coalesce(least(suspects[first], suspects[last + 1]), most * parts) / parts, 1)
        loop
            last := last + 1;
            bytes := bytes + sizes[last];
        end loop;

        -- The wave as a whole; where it fails, its halves, down to the single event, earlier ones first. A
        -- subtransaction per event would cost several times as much for the sake of the rare bad one.
        stack := array[first, last];
        while cardinality(stack) > 0 loop
            -- Each pass comes to an end with one event at least, be they ever so slow.
            exit waves when tidemark.time_left() <= interval '0' or done > 0 and clock_timestamp() >= until;
            first := stack[cardinality(stack) - 1];
            last := stack[cardinality(stack)];
            stack := stack[: cardinality(stack) - 2];
            began := clock_timestamp();
            called := tidemark.target_call(statement, numbers[first : last], null, deliver.route, path);
            took := clock_timestamp() - began;
            if called.code is null then
                if not isempty(called.dropped) then
                    odd := odd + called.dropped;
                    results := results || row(deliver.route.id, first > old, 'skipped', 'transform', null,
                                              called.dropped, 0)::tidemark.result;
                end if;
                done := last;
                again := 0;
                size := greatest(1, least(most, size * 4, (last - first + 1)
                    * extract(epoch from aim) / greatest(extract(epoch from took), 0.001)));
                continue;
            end if;
            fallbacks := fallbacks + 1;
            transient := not called.late and tidemark.is_transient(called.code);
            if called.late and (first < last or not (
                -- It had its time, alone; or had less of it twice.
                took >= deliver.route.timeout
                or took >= current_setting('statement_timeout')::interval / 3 and called.code = '57014'
                or first <= old and suspects[first] = 1))
                -- The halves would outlast the statement.
                or transient and first < last and clock_timestamp() >= until
            then
                odd := odd + tidemark.numbers_multirange(numbers[first : last]);
                results := results || row(deliver.route.id, first > old, 'pending', 'suspect', null,
                    tidemark.numbers_multirange(numbers[first : last]), 0)::tidemark.result;
                done := last;
                exit waves;
            elsif first < last then
                stack := stack || array[(first + last) / 2 + 1, last, first, (first + last) / 2];
                continue;
            elsif transient and called.code like '40%' and again < 2 then
                -- Its locks are gone with its subtransaction: what was in its way can go on.
                again := again + 1;
                stack := stack || array[first, last];
                continue;
            end if;
            done := last;
            again := 0;
            odd := odd + int8multirange(int8range(numbers[first], numbers[first] + 1));
            -- Who holds a lock for long is not the event's fault. Nor is what ails the target alone: were the pass
            -- given up for it, all routes would wait. What ails the server fails the settle too, and with it the pass.
            delay := case when transient or called.late and called.code = '55P03'
                then tidemark.retry_delay(deliver.route.retry_policy, coalesce(errors[first], 0) + 1) end;
            if called.late then
                called.message := format('it took longer than %s: %s', deliver.route.timeout, called.message);
            end if;
            results := results || row(deliver.route.id, first > old,
                case when delay is null then 'failed' else 'pending' end, called.code, called.message,
                int8multirange(int8range(numbers[first], numbers[first] + 1)),
                coalesce(extract(epoch from delay), 0))::tidemark.result;
            if delay is not null and deliver.route.ordering = 'key' then
                waits := numbers[first];
                exit waves;
            end if;
        end loop;
    end loop;

    results := results || array(
        select row(deliver.route.id, f.fresh, 'sent', null, null, f.seqs - odd, 0)::tidemark.result
        from (select p.place > old as fresh, range_agg(int8range(p.seq, p.seq + 1)) as seqs
              from unnest(numbers[: case when done = n then old else done end]) with ordinality p (seq, place)
              group by 1
              -- All of them, as most often: nothing is put together again.
              union all select true, deliver.fresh where done = n) f
        where not isempty(f.seqs - odd));
    if done < n then
        -- What was not tried; left over, it stays as it is, but for what waits behind another one from now on.
        odd := coalesce((
            select range_agg(int8range(o.seq, o.seq + 1))
            from tidemark.events(array[waits]) w
            join tidemark.events(array(select r from unnest(numbers[done + 1 :]) r order by r)) o on o.key = w.key),
            '{}');
        results := results || array(
            select row(deliver.route.id, f.fresh, 'pending', case when f.behind then 'behind_key' else 'busy' end, null,
                       f.seqs, case when not f.behind then 0 end)::tidemark.result
            from (select p.place + done > old as fresh, odd @> p.seq as behind,
                         range_agg(int8range(p.seq, p.seq + 1)) as seqs
                  from unnest(numbers[done + 1 :]) with ordinality p (seq, place) group by 1, 2) f
            where f.fresh or f.behind);
    end if;
    if deliver.route.target_kind = 'river' and exists (select from unnest(results) r where r.outcome = 'sent') then
        perform tidemark.river_wake(deliver.route.options);
    end if;
end
$$;
comment on function tidemark.deliver(tidemark.outbound_route, bigint[], integer[], integer[], int8multirange, boolean,
                                     text, text[], timestamptz) is
    'Delivers events to a target inside the database, in this transaction, with search_path path: left_over, which '
    'were pending, with their suspects and failed attempts, then fresh, each in rising order (small: the payloads of '
    'fresh fit into memory together). An event that makes its target or the route''s transform raise is failed, one '
    'that the transform drops is skipped, the others are sent; fallbacks counts the statements that failed on the '
    'way. Begins nothing more after until, when one is done. A statement that takes too long ends the pass for this '
    'route: its events are suspects, which are tried with fewer next time, down to the one that is failed, or waits, '
    'by the route''s retry policy, where it was a lock; what comes behind is pending (busy). An event whose target '
    'raises what is not its fault (tidemark.is_transient) waits by that policy too, after a deadlock only where it '
    'raises it three times in a row. Raises TM009 where a gate or the route was closed meanwhile.';
grant execute on function tidemark.deliver(tidemark.outbound_route, bigint[], integer[], integer[], int8multirange,
                                           boolean, text, text[], timestamptz)
    to tidemark_executor;
