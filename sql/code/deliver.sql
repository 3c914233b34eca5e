-- Not a security definer, as tidemark.target_call is not.
create or replace function tidemark.deliver(
    route tidemark.outbound_route,
    seqs int8multirange,
    path text,
    out evidence tidemark.evidence[],
    out fallbacks integer)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    wave constant integer := 1000;
    numbers constant bigint[] := tidemark.multirange_numbers(deliver.seqs);
    statement text;
    stack integer[];
    first integer;
    last integer;
    failed int8multirange := '{}';
    code text;
    message text;
    gate text;
begin
    evidence := '{}';
    fallbacks := 0;
    begin
        statement := tidemark.delivery_statement(deliver.route,
            'select tidemark.event_json(o) from tidemark.events($1) o order by o.seq');
    exception when undefined_function or undefined_table or invalid_parameter_value or feature_not_supported then
        get stacked diagnostics code = returned_sqlstate, message = message_text;
        evidence := array[row(deliver.route.id, 'failed', code, message, cardinality(numbers), deliver.seqs)::tidemark.evidence];
        return;
    end;

    for start in 1 .. cardinality(numbers) by wave loop
        -- A gate or a route that was closed since the claim takes the batch back, also what this
        -- transaction has done so far: nothing of it was delivered yet.
        gate := tidemark.closed_switch(deliver.route.worker, array[deliver.route.id]);
        if gate is not null then
            raise exception using errcode = 'TM009', message = gate;
        end if;

        -- The wave as a whole; where it fails, its halves, down to the single event, earlier ones first. A
        -- subtransaction per event would cost several times as much for the sake of the rare bad one.
        stack := array[start, least(start + wave - 1, cardinality(numbers))];
        while cardinality(stack) > 0 loop
            first := stack[cardinality(stack) - 1];
            last := stack[cardinality(stack)];
            stack := stack[: cardinality(stack) - 2];
            select c.* into code, message from tidemark.target_call(statement, numbers[first : last], null, path) c;
            continue when code is null;
            fallbacks := fallbacks + 1;
            if first = last then
                failed := failed + int8multirange(int8range(numbers[first], numbers[first] + 1));
                evidence := evidence || row(deliver.route.id, 'failed', code, message, 1,
                    int8multirange(int8range(numbers[first], numbers[first] + 1)))::tidemark.evidence;
            else
                stack := stack || array[(first + last) / 2 + 1, last, first, (first + last) / 2];
            end if;
        end loop;
    end loop;

    if cardinality(numbers) > cardinality(evidence) then
        evidence := evidence || row(deliver.route.id, 'sent', null, null, cardinality(numbers) - cardinality(evidence),
                                    deliver.seqs - failed)::tidemark.evidence;
        if deliver.route.target_kind = 'river' then
            perform tidemark.river_wake(deliver.route.options);
        end if;
    end if;
end
$$;
comment on function tidemark.deliver(tidemark.outbound_route, int8multirange, text) is
'Delivers events to a target inside the database, in this transaction, in the order of numbers, and with search_path path. An event that makes its target raise is failed, the others are sent; fallbacks counts the statements that failed on the way. Raises TM009 where a gate or the route was closed meanwhile; an error that is not the event''s fault (tidemark.is_transient) is raised on.';
revoke all on function tidemark.deliver(tidemark.outbound_route, int8multirange, text) from public;
grant execute on function tidemark.deliver(tidemark.outbound_route, int8multirange, text) to tidemark_executor;
