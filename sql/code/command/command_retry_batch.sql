create or replace function tidemark.command_retry_batch(services text[], idempotency_keys text[], most integer)
returns json
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    at constant timestamptz := clock_timestamp();
    heads record;
    calls jsonb[];
    n integer;
    answers json;
    state text;
    kind text;
    position_ text;
begin
    perform tidemark.session_check('a command', 'otherwise a command would not see the claim of the one before it.');
    -- What another session took up meanwhile is left to it. With the first one of a key its followers are this
    -- session's, too.
    select array_agg(h.service order by h.n) as services, array_agg(h.idempotency_key order by h.n) as keys
    into heads
    from (
        select p.service, p.idempotency_key, u.n
        from unnest(services, idempotency_keys) with ordinality u (service, idempotency_key, n)
        join tidemark.command_parked p on p.service = u.service and p.idempotency_key = u.idempotency_key
        where p.next_attempt_at <= at for no key update of p skip locked) h;
    -- Before their claims, and up to one that was given up since.
    with line as (
        select l.service, l.idempotency_key, l.n,
               row_number() over (partition by l.service, l.key order by l.n) as place
        from tidemark.command_line(heads.services, heads.keys, most) with ordinality
            l (service, idempotency_key, position, key, call, error_count, next_attempt_at, first_failed_at, sqlstate,
               n)
    ), locked as (
        select p.service, p.idempotency_key, p.key, p.call, l.n, l.place from line l
        join tidemark.command_parked p on p.service = l.service and p.idempotency_key = l.idempotency_key
        for no key update of p
    )
    select array_agg(l.call || jsonb_build_object('parked', true, 'failed', m.attempts) order by l.n) into calls
    from (select o.*, row_number() over (partition by o.service, o.key order by o.n) as nth from locked o) l
    join tidemark.command_claim m on m.service = l.service and m.idempotency_key = l.idempotency_key
    where l.nth = l.place;
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
    elsif heads.services is not null then
        answers := json_build_array(tidemark.command_retry_due(heads.services[1], heads.keys[1], false));
    end if;
    perform tidemark.command_reset(), tidemark.flush_on_commit();
    return coalesce(answers, '[]');
end
$$;
comment on function tidemark.command_retry_batch(text[], text[], integer) is
    'Tries these parked commands and those behind them, at most so many, in one batch: those before the first that '
    'fails take effect; if that is the first of all, it is tried as by tidemark.command_retry_one. Returns the result '
    'document of each that was tried. Raises 57014 where one does not come to an end: nothing took effect then.';
grant execute on function tidemark.command_retry_batch(text[], text[], integer) to tidemark_executor;
