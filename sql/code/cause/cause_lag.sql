create or replace function tidemark.cause_lag(names text[])
returns table (name text, found text, waiting bigint)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    -- Mostly none is behind.
    if cardinality(cause_lag.names) = 0 then
        return;
    end if;
    return query
    with log as materialized (select tidemark.log_inflow() as rate, tidemark.log_event_bytes() as bytes)
    select tidemark.executor_id(l.worker, l.source, l.shard),
           format('%s unread, the oldest for %s; %s%s',
                  case when n.waiting is null then 'events or rows are'
                       else case when n.waiting = 10000 then 'at least ' else '' end || n.waiting
                            || case when l.source = 'outbox' then ' events' when l.source like 'kafka:%' then ' records'
                                    else ' rows' end || ' are' end,
                  make_interval(secs => l.seconds),
                  case when l.rate > 0 then format('%s a second are read', l.rate)
                       when l.rate = 0 then 'none was read in the last minutes'
                       else 'how many are read is not known' end,
                  concat(case when i.rate > l.rate
                                   then format(', and %s come: it falls behind further, and the log keeps %s an hour '
                                               'for it', i.rate,
                                               pg_size_pretty(((i.rate - l.rate) * 3600 * i.bytes)::bigint))
                              when l.rate > 0 and n.waiting > 0
                                   then format(', so that it has caught up in %s if no more come',
                                               make_interval(secs => ceil(n.waiting / l.rate)::double precision)) end,
                         '; it waits for ' || l.blocked_by)),
           n.waiting
    from tidemark.cursor_lag l
    join tidemark.worker_cursor c on c.worker = l.worker and c.source = l.source and c.shard = l.shard
    cross join lateral (select tidemark.cursor_waiting(c) as waiting) n
    left join log i on l.source = 'outbox'
    where tidemark.executor_id(l.worker, l.source, l.shard) = any (cause_lag.names) and l.seconds is not null;
end
$$;
comment on function tidemark.cause_lag(text[]) is
    'How far each of these cursors, worker/source/shard, is behind, in a sentence: how much is unread, since when, at '
    'which rate it is read, and when it will have caught up; of the log also at which rate events come, if that is '
    'more.';
grant execute on function tidemark.cause_lag(text[]) to tidemark_reader, tidemark_executor;
