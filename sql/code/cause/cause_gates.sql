create or replace function tidemark.cause_gates()
returns setof tidemark.trouble
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return query
    with closed as materialized (
        -- Of a gate that closes several workers each has its own events waiting.
        select g.gate, l.worker, n.waiting, l.seconds
        from (select w.worker, tidemark.closed_gate(w.worker) as gate
              from (select distinct c.worker from tidemark.worker_cursor c) w offset 0) g
        -- Look only into the tables of workers that are closed.
        cross join lateral (
            select l.* from tidemark.cursor_lag l where g.gate is not null and l.worker = g.worker offset 0) l
        join tidemark.worker_cursor c on c.worker = l.worker and c.source = l.source and c.shard = l.shard
            and tidemark.cursor_is_last(c)
        cross join lateral (select tidemark.cursor_waiting(c) as waiting) n
        where l.seconds > 3600
    ), held as (
        -- The gate of a domain holds events of a worker that goes on with others. Count them for each by itself: one
        -- that holds very many must not hide another.
        select 'domain.' || d.domain || '.enabled' as gate, null as worker, p.waiting, p.seconds
        from tidemark.shut_domains() d
        cross join tidemark.worker w
        cross join lateral (
            select count(*) as waiting, extract(epoch from clock_timestamp() - min(p.created_at)) as seconds
            from (select p.created_at from tidemark.pending p
                  where p.worker_id = w.id and p.domain = d.domain and p.held
                  order by p.seq limit 10000) p) p
    ), gate as (
        select x.gate, case when x.gate = 'paused' then x.worker end as worker, sum(x.waiting)::bigint as waiting,
               max(x.seconds) as seconds
        from (select * from closed union all select * from held) x
        group by 1, 2
        having max(x.seconds) > 3600
           -- Something waits also where this role may not count it.
           and bool_or(x.waiting is distinct from 0)
    )
    select 'gate_closed', coalesce('worker ' || g.worker, g.gate), 'warn', a.at,
           format('%s since %s by %s, %s; the oldest of what waits is %s old',
                  case g.gate when 'paused' then 'paused' when 'stage' then 'the stage is dry_run'
                       else 'closed' end,
                  coalesce(date_trunc('second', a.at)::text, 'the installation'),
                  coalesce(a.actor, 'no one: it was never open'), coalesce('reason: ' || a.reason, 'without a reason'),
                  make_interval(secs => floor(g.seconds)::double precision)),
           g.waiting, '{}'::text[],
           array[o.sql], array[o.cli]
    from gate g
    cross join lateral tidemark.gate_opening(g.gate, g.worker, 'its events wait') o
    left join lateral (
        select s.changed_at as at, s.changed_by as actor, s.reason from tidemark.stage s where g.gate = 'stage'
        union all
        (select t.at, t.actor, t.reason from tidemark.audit t
         where t.object = case g.gate when 'paused' then 'worker ' || g.worker else 'setting ' || g.gate end
           and case g.gate when 'paused' then t.action = 'pause'
                    when 'stage' then false else t.after ->> 'value' is distinct from 'true' end
         order by t.id desc limit 1)) a on true
    -- tidemark.cause_daemons reports a copy that is not armed.
    where (g.gate <> 'stage' or (select s.stage from tidemark.stage s) = 'dry_run')
      and coalesce(a.at < clock_timestamp() - interval '1 hour', true);
end
$$;
comment on function tidemark.cause_gates() is
    'The part of tidemark.cause about gates that were closed, and workers that were paused, more than an hour ago, '
    'while events older than that wait: gate_closed.';
grant execute on function tidemark.cause_gates() to tidemark_reader, tidemark_executor;
