create or replace function tidemark.cause_transactions()
returns setof tidemark.trouble
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    t record;
    held record;
    writes_log boolean;
    parks boolean;
    older text[];
    hidden text[] := '{}';
    found_ tidemark.trouble;
begin
    for t in
        select o.* from tidemark.open_transactions() o
        cross join lateral (
            select max(age(l.transactionid)) as age from pg_locks l
            where o.hidden and l.locktype = 'transactionid' and l.granted and l.virtualtransaction = o.fence) x
        order by o.since, x.age desc nulls last
    loop
        if t.hidden then
            -- When it began is hidden, but not which of them was the first to write: the others may have begun just
            -- now.
            older := hidden;
            hidden := hidden || t.fence;
            -- Its numbers of the log are older than the next event.
            continue when not exists (
                select from tidemark.worker_cursor c
                where t.fence = any (c.fence) and not c.fence && older and (c.source <> 'outbox' or (
                    select o.created_at from tidemark.outbox o where o.seq > lower(c.fenced) order by o.seq limit 1)
                    < clock_timestamp() - interval '20 seconds'));
            return next row('sessions_hidden', 'pid ' || t.pid, 'unknown', null,
                            t.who || ', holds numbers, and its times are not shown to tidemark_owner', null,
                            '{}', array['grant pg_read_all_stats to tidemark_owner;'], '{}')::tidemark.trouble;
            continue;
        end if;
        writes_log := 'tidemark.outbox'::regclass::oid = any (t.relations);
        -- While it lasts, no parked command is released (tidemark.command_release).
        parks := 'tidemark.command_parked'::regclass::oid = any (t.relations);
        select count(*) filter (where c.stops) as stopped, sum(c.numbers) as numbers,
               coalesce(bool_or(c.horizon), false) as horizon,
               sum(tidemark.cursor_waiting(c.cursor)) filter (where c.stops and c.last_) as waiting,
               string_agg(c.name, ', ' order by c.name) filter (where c.stops) as names,
               array_agg('backlog ' || c.name) filter (where c.stops)
                   || array_agg('finding cursor_lag ' || c.name) filter (where c.stops)
                   || array_agg('cursor ' || c.name) filter (where c.stops)
                   || array_agg('finding cursor_holes ' || tidemark.cursor_name(c.worker, c.shard))
                       filter (where c.stops) as folds
        into held
        from (
            select c as cursor, c.worker, c.shard, tidemark.executor_id(c.worker, c.source, c.shard) as name,
                   tidemark.cursor_is_last(c) as last_, s.safety = 'clock' as horizon,
                   s.safety = 'clock' or c.last_run_summary ? 'blocked_by' or w.read_order = 'strict' as stops,
                   case when c.source = 'outbox'
                             then (select sum(upper(h) - lower(h)) from unnest(c.holes + c.fenced) h) end as numbers
            from tidemark.worker_cursor c
            join tidemark.worker w on w.worker = c.worker
            left join tidemark.source s on s.source = c.source
            where tidemark.closed_gate(c.worker) is null
              and case when c.source = 'outbox' or s.safety = 'capture' then writes_log
                       -- Every transaction keeps the horizon back; of the prepared ones those that wrote the table.
                       when s.safety = 'clock' and t.gid is null then true
                       when s.source is null then false -- of commands, which come from Kafka
                       -- No to_regclass: a role that looks may not use the schema.
                       else t.relations && coalesce(tidemark.relation_tree(tidemark.source_fence(s)), '{}') end) c;
        continue when not (t.gid is not null or t.idle and (writes_log or parks or held.horizon)
                           or coalesce(held.waiting, 0) > 0);
        found_.cause := case when t.gid is null then 'open_transaction' else 'prepared_transaction' end;
        found_.subject := coalesce(t.gid, 'pid ' || t.pid);
        found_.status := case when coalesce(held.waiting, 0) > 0 or t.waiters > 0 then 'bad' else 'warn' end;
        found_.since := t.since;
        found_.waiting := held.waiting;
        found_.folds := coalesce(held.folds, '{}');
        found_.found := concat_ws('; ',
            format('%s, %s for %s', t.who,
                   case when t.gid is not null then 'not ended' when t.idle then 'idle in its transaction'
                        else 'in its transaction' end,
                   date_trunc('second', clock_timestamp() - t.since)),
            case when writes_log then format('it has written events, and %s numbers of the log are open',
                                             coalesce(held.numbers, 0)) end,
            case when parks then 'it has parked commands or released some, and no other is retried' end,
            case when held.horizon then 'rows that were written since are not read: '
                                        || coalesce(held.names, '') end,
            case when t.waiters > 0 then format('%s sessions wait for its locks', t.waiters) end);
        found_.sql := array[case when t.gid is null then format('select pg_terminate_backend(%s);', t.pid)
                                 else format('rollback prepared %L;', t.gid) end];
        found_.cli := '{}';
        return next found_;
    end loop;
end
$$;
comment on function tidemark.cause_transactions() is
    'The part of tidemark.cause about transactions that do not end: open_transaction, prepared_transaction, '
    'sessions_hidden (of those that a cursor waits for the one that was the first to write). bad: something waits for '
    'it.';
grant execute on function tidemark.cause_transactions() to tidemark_reader, tidemark_executor;
