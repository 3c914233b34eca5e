create or replace function tidemark.command_retry_next(
    most integer, out services text[], out idempotency_keys text[], out patience bigint)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_sort = off
set enable_incremental_sort = off
set jit = off
as $$
#variable_conflict use_column
declare
    -- Not clock_timestamp() in the query, which no index can serve: it would read all that wait behind others, too.
    at constant timestamptz := clock_timestamp();
    open_ text[];
    look integer := command_retry_next.most;
    n integer;
begin
    if tidemark.armed() then
        open_ := array(select s.service from tidemark.service s where tidemark.closed_command(s.service) is null);
    end if;
    -- One that another session is trying is left to it: of as many others as there are locks, the look is repeated
    -- further on. One that has failed before is tried alone.
    loop
        with first as materialized (
            select d.place, d.next_attempt_at, d.position
            from tidemark.command k
            -- Of each live command, in the order of the one index that has it: what waits behind a closed gate, or for
            -- a command that is off, is not read, however much it is.
            cross join lateral (
                select p.ctid as place, p.next_attempt_at, p.position from tidemark.command_parked p
                where p.service = k.service and p.call ->> 'command' = k.command
                  and p.call ->> 'command_version' = k.version::text
                  and p.next_attempt_at <= at and p.next_attempt_at < 'infinity'
                order by p.next_attempt_at, p.position limit look) d
            where k.service = any (open_) and k.enabled and not k.dry_run
            order by d.next_attempt_at, d.position limit look
        ), due as materialized (
            select p.service, p.idempotency_key, p.next_attempt_at, p.position, p.sqlstate is not null as suspect
            from tidemark.command_parked p where p.ctid = any (array(select f.place from first f))
            order by p.next_attempt_at, p.position limit command_retry_next.most for no key update of p skip locked
        ), placed as (
            select d.*, row_number() over w as n, bool_or(d.suspect) over w as late
            from due d where d.next_attempt_at <= at
            window w as (order by d.next_attempt_at, d.position rows between unbounded preceding and current row)
        )
        select array_agg(p.service order by p.n) filter (where p.n = 1 or not p.late),
               array_agg(p.idempotency_key order by p.n) filter (where p.n = 1 or not p.late),
               case when count(*) < command_retry_next.most and (select count(*) from first) = look then look end
        into services, idempotency_keys, n
        from placed p;
        exit when n is null;
        look := 2 * look;
    end loop;
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
