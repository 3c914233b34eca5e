-- public
create or replace function tidemark.command_retry(most integer default 50)
returns table (service text, idempotency_key text, document json)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    next_ record;
    due tidemark.command_parked;
begin
    perform tidemark.session_check('a command', 'otherwise a command would not see the claim of the one before it.');
    for i in 1..most loop
        next_ := tidemark.command_retry_next(1);
        due.service := next_.services[1];
        due.idempotency_key := next_.idempotency_keys[1];
        exit when due.service is null;
        begin
            return query select due.service, due.idempotency_key,
                tidemark.command_retry_due(due.service, due.idempotency_key, false);
        exception when query_canceled then
            -- The statement_timeout does not come twice: this one waits on, and the call ends.
            return query select due.service, due.idempotency_key,
                tidemark.command_retry_due(due.service, due.idempotency_key, true);
            exit;
        end;
    end loop;
end
$$;
comment on function tidemark.command_retry(integer) is
    'Tries parked commands that are due, in the order in which they became due, and the ones behind them. Returns the '
    'result document of each. Those whose gate is closed, or that are off, wait. One that is canceled, by the '
    'statement_timeout as a rule, waits on, and ends the call.';
grant execute on function tidemark.command_retry(integer) to tidemark_executor;
