create or replace function tidemark.command_retry_batch(services text[], idempotency_keys text[], most integer)
returns json
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    head text; -- service and key of the first
    key text;
    calls jsonb[];
    n integer;
    answers json;
    state text;
    kind text;
    position_ text;
begin
    perform set_config('tidemark.pooled', 'true', true);
    perform tidemark.session_check('a command', 'otherwise a command would not see the claim of the one before it.');
    perform tidemark.command_consumer_check();
    select b.service, b.idempotency_key, b.calls into head, key, calls
    from tidemark.command_retry_begin(services, idempotency_keys, most) b;
    -- By the allowlist of now, not the one under which they were parked: those before the first that it refuses.
    n := coalesce((
        select min(c.n) - 1 from unnest(calls) with ordinality c (call, n)
        cross join lateral tidemark.command_problem(c.call, tidemark.command_of(c.call)) p
        where p.code like 'identity.%'), cardinality(calls), 0);
    if n > 0 then
        perform tidemark.command_gate_check(to_jsonb(calls[: n]));
    end if;
    while n > 0 loop
        begin
            select json_agg(b.document order by b.position) into answers
            from tidemark.command_batch(to_jsonb(calls[: n])) b;
            exit;
        exception when assert_failure or others then
            -- Those before the one that failed. It is tried alone when it is the first.
            get stacked diagnostics state = returned_sqlstate, kind = pg_datatype_name, position_ = column_name;
            if kind not in ('retryable', 'operator', 'outage', 'terminal') then
                raise;
            end if;
            n := position_::integer - 1;
        end;
    end loop;
    if n > 0 then
        perform tidemark.command_release(array_agg(c ->> 'service'), array_agg(c ->> 'idempotency_key'))
        from unnest(calls[: n]) c;
        perform tidemark.finding_close('command_circuit', c.name)
        from (select distinct format('%s.%s/v%s', c ->> 'service', c ->> 'command', c ->> 'command_version') as name
              from unnest(calls[: n]) c order by 1) c;
        perform tidemark.command_gate_check(to_jsonb(calls[: n]));
    elsif head is not null then
        answers := json_build_array(tidemark.command_retry_due(head, key, false));
    end if;
    perform tidemark.command_consumer_check();
    perform tidemark.command_reset(), tidemark.flush_on_commit();
    return coalesce(answers, '[]');
end
$$;
comment on function tidemark.command_retry_batch(text[], text[], integer) is
    'Tries these parked commands and those behind them, at most so many, in one batch: those before the first that '
    'fails take effect; if that is the first of all, it is tried as by tidemark.command_retry_one. Returns the result '
    'document of each that was tried. Raises TM009 as tidemark.command_consumer_check, and 57014 where one does not '
    'come to an end: nothing took effect then.';
grant execute on function tidemark.command_retry_batch(text[], text[], integer) to tidemark_executor;
