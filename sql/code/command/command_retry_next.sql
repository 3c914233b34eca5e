create or replace function tidemark.command_retry_next(
    most integer, out services text[], out idempotency_keys text[], out patience bigint)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    -- Not clock_timestamp() in the query, which no index can serve: it would read all that wait behind others, too.
    at constant timestamptz := clock_timestamp();
begin
    -- One that another session is trying is left to it. One that has failed before is tried alone.
    with due as (
        select p.service, p.idempotency_key, p.next_attempt_at, p.sqlstate is not null as suspect
        from tidemark.command_parked p
        join tidemark.command k on k.service = p.service and k.command = p.call ->> 'command'
                               and k.version = (p.call ->> 'command_version')::integer
        where p.next_attempt_at <= at and k.enabled and not k.dry_run and tidemark.armed()
          and tidemark.closed_command(p.service) is null
        order by p.next_attempt_at limit command_retry_next.most for no key update of p skip locked
    ), placed as (
        select d.*, row_number() over w as n, bool_or(d.suspect) over w as late
        from due d window w as (order by d.next_attempt_at rows between unbounded preceding and current row)
    )
    select array_agg(p.service order by p.n), array_agg(p.idempotency_key order by p.n)
    into services, idempotency_keys
    from placed p where p.n = 1 or not p.late;
    patience := (
        select tidemark.command_patience(jsonb_agg(l.call))
        from tidemark.command_line(services, idempotency_keys, command_retry_next.most) l);
end
$$;
comment on function tidemark.command_retry_next(integer) is
    'Parked commands that are due, those first that are due first, at most so many: only the first if it failed '
    'before, otherwise it and those after it that did not. patience is the statement_timeout in ms for '
    'trying them, with those behind them. Null: none.';
grant execute on function tidemark.command_retry_next(integer) to tidemark_executor;
