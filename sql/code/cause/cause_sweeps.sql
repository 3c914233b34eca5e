create or replace function tidemark.cause_sweeps()
returns setof tidemark.trouble
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
    with late as (
        select tidemark.executor_id(c.worker, c.source, c.shard) as name, c.source, s.sweep_window, c.sweep,
               (c.sweep ->> 'done_at')::timestamptz as done_at,
               clock_timestamp() - (c.sweep ->> 'done_at')::timestamptz - s.sweep_every as late,
               -- How much of the window the sweep has read that is under way.
               case when c.sweep ? 'next_xmin' and c.sweep ->> 'segment' = 'window' then least(greatest(
                   extract(epoch from (c.sweep ->> 'ts')::timestamptz - (c.watermark_ts - s.sweep_window))
                   / extract(epoch from s.sweep_window), 0), 1) end as part
        from tidemark.worker_cursor c join tidemark.source s on s.source = c.source
        -- Before the first sweep, what was there at first is read.
        where s.sweep_window is not null and c.phase <> 'seeding' and isfinite(c.watermark_ts)
          and (c.sweep ->> 'done_at')::timestamptz + s.sweep_every < clock_timestamp()
          -- A worker that is held, or rests until its hours come, says so itself.
          and c.last_run_summary ->> 'status' = 'ran' and tidemark.closed_gate(c.worker) is null
    ), rest as (
        select l.*, date_trunc('second', l.late * ((1 - l.some) / l.some)::double precision) as left_
        from (select l.*, nullif(round(l.part, 3), 0) as some from late l) l
        where l.late > tidemark.interval_setting('lag.warn', '1 minute')
    )
    select 'sweep_behind', r.name,
           case when r.late > tidemark.interval_setting('lag.bad', '15 minutes') then 'bad' else 'warn' end,
           clock_timestamp() - r.late,
           format('the sweep, which reads the last %s again, was due %s ago, and the last whole one ended %s: rows '
                  'that came late wait for it; %s', r.sweep_window, date_trunc('second', r.late),
                  date_trunc('second', r.done_at),
                  case when r.some is not null
                            then format('the one under way has read %s %% of that time, and ends in %s at this rate',
                                        round(r.some * 100), r.left_)
                       when r.sweep ? 'next_xmin' then 'one is under way' else 'none is under way' end),
           null::bigint, '{}'::text[],
           array[format('select tidemark.source_set(%L, ''{"sweep_every": "%s"}'', ''its sweep takes as long'');',
                        r.source, e.every)],
           array[format('tidemark source set %s --sweep-every %s --reason ''its sweep takes as long''',
                        tidemark.shell_word(r.source), e.every)]
    from rest r
    join tidemark.heartbeat_health h on h.executor_id = r.name and h.state = 'alive'
    -- Twice what it takes, in whole minutes.
    cross join lateral (
        select format('%sm', ceil(extract(epoch from 2 * (clock_timestamp() - r.done_at + coalesce(r.left_, '0')))
                                  / 60)) as every) e
$$;
comment on function tidemark.cause_sweeps() is
    'The part of tidemark.cause about sweeps: sweep_behind, of a source whose rows are read again later than its '
    'sweep_every asks for by the setting lag.warn (bad: by lag.bad).';
grant execute on function tidemark.cause_sweeps() to tidemark_reader, tidemark_executor;
