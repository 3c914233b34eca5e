-- public
create or replace function tidemark.command_retry(most integer default 50)
returns table (service text, idempotency_key text, document json)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    due record;
begin
    perform tidemark.session_check('a command', 'otherwise a command would not see the claim of the one before it.');
    for i in 1..most loop
        due := tidemark.command_retry_next();
        exit when due.service is null;
        return query select due.service, due.idempotency_key,
            tidemark.command_retry_one(due.service, due.idempotency_key, false);
    end loop;
end
$$;
comment on function tidemark.command_retry(integer) is
    'Tries parked commands that are due, in the order in which they became due, and the ones behind them. Returns the '
    'result document of each. Those whose gate is closed, or that are off, wait.';
grant execute on function tidemark.command_retry(integer) to tidemark_executor;
