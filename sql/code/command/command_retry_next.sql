create or replace function tidemark.command_retry_next(
    out service text, out idempotency_key text, out patience bigint)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    -- Not clock_timestamp() in the query, which no index can serve: it would read all that wait behind others, too.
    at constant timestamptz := clock_timestamp();
    parked tidemark.command_parked;
begin
    -- One that another session is trying is left to it.
    select p.* into parked from tidemark.command_parked p
    join tidemark.command k on k.service = p.service and k.command = p.call ->> 'command'
                           and k.version = (p.call ->> 'command_version')::integer
    where p.next_attempt_at <= at and k.enabled and not k.dry_run and tidemark.armed()
      and tidemark.closed_command(p.service) is null
    order by p.next_attempt_at limit 1 for no key update of p skip locked;
    service := parked.service;
    idempotency_key := parked.idempotency_key;
    patience := tidemark.command_patience(jsonb_build_array(parked.call));
end
$$;
comment on function tidemark.command_retry_next() is
    'The parked command that is due first, which it locks, and the statement_timeout in ms for trying it. Null: none.';
grant execute on function tidemark.command_retry_next() to tidemark_executor;
