create or replace function tidemark.command_problem(call jsonb, out code text, out message text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    c constant tidemark.command := tidemark.command_of(call);
    age constant interval := clock_timestamp() - (call ->> 'record_at')::timestamptz;
begin
    select r.code, r.message into code, message from tidemark.command_right(call, c) r;
    if code is not null then
        return;
    end if;
    -- The daemon has checked the payload by the whole schema, unless that has changed since.
    if call ? 'misfit' then
        message := case call -> 'misfit' ->> 'schema' when c.payload_digest then call -> 'misfit' ->> 'message' end;
    end if;
    if message is null and call ->> 'fits' is distinct from c.payload_digest then
        select string_agg(e, '; ' order by e) into message
        from (select e from tidemark.contract_errors(call -> 'payload', c.payload_schema) e limit 20) e;
    end if;
    if message is not null then
        code := 'contract.payload_invalid';
        message := left('payload ' || message, 1000);
    elsif age > c.retention then
        code := 'idempotency.expired';
        message := format('the record is %s old, and claims are kept for %s', date_trunc('second', age),
                          c.retention);
    elsif not c.enabled and c.when_disabled = 'reject' then
        code := 'contract.disabled';
        message := format('command %s is off', c.name);
    end if;
end
$$;
comment on function tidemark.command_problem(jsonb) is
    'Why a command may not run, in the order of the checks: tidemark.command_right, payload, age of the record, policy '
    'of a command that is off. Null: it may.';
