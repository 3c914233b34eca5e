-- public
-- Not a definer: the transform runs with the rights of the caller, who must be one that may read payloads.
create or replace function tidemark.route_backtest(
    route_code text,
    since timestamptz,
    until timestamptz default null,
    samples integer default 3)
returns table (
    outcome tidemark.outcome,
    reason text,
    detail text,
    target_kind text,
    target_ref text,
    domain text,
    type text,
    events bigint,
    first_at timestamptz,
    last_at timestamptz,
    keys bigint,
    without_key bigint,
    payload_bytes bigint,
    largest_payload integer,
    busiest_minute timestamptz,
    busiest_events bigint,
    newest bigint[])
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    route tidemark.outbound_route := (
        select r from tidemark.outbound_route r where r.route_code = route_backtest.route_code);
    domains text[];
    path text;
    event record;
    seqs bigint[] := '{}';
    payloads jsonb[] := '{}';
    bytes bigint := 0;
    tried record;
    dropped int8multirange := '{}';
    failed bigint[] := '{}';
    failure text;
    remark text;
begin
    if route is null then
        raise exception using errcode = 'TM004', message = format('there is no route "%s"', route_backtest.route_code),
            hint = 'Routes: select route_code from tidemark.outbound_route;';
    end if;
    if since is null or since > clock_timestamp() then
        raise exception using errcode = 'TM005',
            message = format('a backtest covers the past, and since is %s', coalesce(since::text, 'null'));
    end if;
    if until <= since then
        raise exception using errcode = 'TM005',
            message = format('a backtest until %s does not begin at %s', until, since);
    end if;
    if samples is null or samples not between 0 and 100 then
        raise exception using errcode = 'TM005',
            message = format('samples is %s, must be 0 to 100', coalesce(samples::text, 'null'));
    end if;

    if route.transform is not null and not (
        has_function_privilege('tidemark.transformed(text, text[], jsonb[], text)', 'execute')
        and coalesce(has_function_privilege((tidemark.transform_target(route.transform)).function, 'execute'), true))
    then
        remark := format('the transform %s was not called: it takes tidemark_executor and the right to execute it',
                         route.transform);
    elsif route.transform is not null then
        path := tidemark.default_search_path();
        domains := (select w.domains from tidemark.worker w where w.worker = route.worker);
        for event in
            select o.seq, o.payload from tidemark.outbox o
            where o.created_at >= since and o.created_at < coalesce(until, 'infinity')
              and (domains is null or o.domain = any (domains)) and tidemark.route_matches(route, o)
        loop
            seqs := seqs || event.seq;
            payloads := payloads || event.payload;
            bytes := bytes + tidemark.payload_bytes(event.payload);
            continue when cardinality(seqs) < 500 and bytes < 1000000;
            tried := tidemark.transform_try(route, seqs, payloads, path);
            dropped := dropped + tried.dropped;
            failed := failed || tried.failed;
            failure := coalesce(failure, tried.failures[1]);
            seqs := '{}';
            payloads := '{}';
            bytes := 0;
        end loop;
        tried := tidemark.transform_try(route, seqs, payloads, path);
        dropped := dropped + tried.dropped;
        failed := failed || tried.failed;
        failure := coalesce(failure, tried.failures[1]);
    end if;
    return query select * from tidemark.backtest_ruled(
        route_backtest.route_code, since, until, samples, dropped,
        tidemark.numbers_multirange(failed), failure, remark);
end
$$;
comment on function tidemark.route_backtest(text, timestamptz, timestamptz, integer) is
    'What the route would have done with the events created from since to until (null: now), had it been enabled and '
    'live, with all gates open, beside the other routes as they are. Of a worker with domains, only events of these '
    'are looked at. The route''s transform is called with the caller''s rights: outcome skipped with reason '
    'transform, or failed with transform_failed; for a caller without tidemark_executor, or without the right to '
    'execute it, it is not, as detail says. Writes nothing. Returns for each outcome a row for all types together '
    '(domain and type null) and a row for each type, with the numbers of the newest samples events; outcome null '
    'stands for events that the route does not claim. pending is what would be delivered: the backtest knows whether '
    'the target exists, and not what it would answer. keys are distinct ordering keys; payload_bytes and '
    'largest_payload count the payloads as JSON text; busiest_minute had busiest_events. Raises TM004, TM005.';
grant execute on function tidemark.route_backtest(text, timestamptz, timestamptz, integer) to tidemark_reader;
