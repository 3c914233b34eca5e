create or replace function tidemark.command_retry_one(service text, idempotency_key text, overdue boolean)
returns json
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    answer json;
begin
    perform set_config('tidemark.pooled', 'true', true);
    perform tidemark.session_check('a command', 'otherwise a command would not see the claim of the one before it.');
    perform tidemark.command_consumer_check();
    answer := tidemark.command_retry_due(command_retry_one.service, command_retry_one.idempotency_key,
                                         command_retry_one.overdue);
    perform tidemark.command_consumer_check();
    perform tidemark.command_reset(), tidemark.flush_on_commit();
    return answer;
end
$$;
comment on function tidemark.command_retry_one(text, text, boolean) is
    'tidemark.command_retry_due for the daemon: it also resets the settings of the session, and raises TM009 as '
    'tidemark.command_consumer_check.';
grant execute on function tidemark.command_retry_one(text, text, boolean) to tidemark_executor;
