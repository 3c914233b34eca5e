create or replace function tidemark.look_state(
    owner text,
    workers text[],
    sources text[],
    shards integer[],
    epochs bigint[])
returns table (
    n integer,
    why text,
    looks boolean,
    source tidemark.source,
    after_ts timestamptz,
    after_id text,
    open int8multirange,
    horizon timestamptz,
    sweep xid8)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    clock constant timestamptz := clock_timestamp();
    oldest timestamptz;
    hidden boolean := false;
    prepared boolean := false;
    closed constant text[] := tidemark.closed_domains();
begin
    perform tidemark.session_check('a worker', 'each of its statements must see what was committed before it.');
    if exists (select from tidemark.source s where s.source = any (look_state.sources) and s.safety = 'clock') then
        -- As in tidemark.source_horizon, and for its reasons: then, in later statements, the data.
        select o.oldest, o.hidden into oldest, hidden from tidemark.oldest_transaction() o;
        prepared := exists (
            select from pg_locks l
            where l.pid is null and l.locktype = 'relation' and l.mode = 'RowExclusiveLock'
              and l.database = (select d.oid from pg_database d where d.datname = current_database()));
    end if;

    return query
    select l.n, l.why, l.looks,
           l.definition, coalesce(l.watermark_ts, '-infinity'), l.watermark_id, l.open,
           -- What a prepared transaction has written may still appear below it.
           case when not prepared then l.horizon end,
           -- Only of a table that is looked at: else a later sweep would pass over what this one has not seen.
           case when l.looks and l.sweeps then pg_snapshot_xmin(pg_current_snapshot()) end
    from (select k.*, k.why is null and k.epoch is not null and k.source is not null and not k.quiet as looks from (
        select a.n::integer as n, a.epoch, s.source, s as definition, c.watermark_ts, c.watermark_id, c.holes + c.fenced as open,
               h_.horizon, q.quiet, s.safety in ('clock', 'declared') and d.due as sweeps,
               case
                   when c.worker is null or h.executor_id is null or c.source <> 'outbox' and s.source is null then 'gone'
                   when a.epoch is null then case
                       when (h.lease_until is null or h.lease_until <= clock_timestamp() or h.lease_owner = look_state.owner) and g.gate is null
                           and not edited then 'free' end
                   when h.lease_epoch <> a.epoch or h.lease_owner is distinct from look_state.owner then 'fenced'
                   when g.gate is not null then 'closed'
                   when edited then 'edited'
                   when c.source = 'outbox' and exists (
                       select from tidemark.outbound_route r
                       cross join lateral (
                           select from tidemark.pending p
                           where p.route_id = r.id and p.worker_id = w.id and p.replay in (false, true)
                             and p.next_attempt_at <= clock_timestamp() limit 1) p
                       where r.worker = w.worker and r.enabled and not r.dry_run) then 'retry'
                   -- What was put aside while a domain's gate was closed.
                   when c.source = 'outbox' and exists (select from tidemark.pending p where p.worker_id = w.id and p.held)
                       and exists (
                           select from tidemark.domain d cross join lateral (
                               select from tidemark.pending p
                               where p.worker_id = w.id and p.held and p.domain = d.domain limit 1) p
                           where d.domain <> all (closed)) then 'retry'
                   when c.source = 'outbox' and exists (
                       select from tidemark.replay_job j join tidemark.outbound_route r on r.id = j.route_id
                       where j.worker_id = w.id and j.finished_at is null and j.due_at <= clock_timestamp()
                         and r.worker = w.worker and r.enabled and not r.dry_run
                         and not exists (select from tidemark.pending p where p.replay_id = j.id)) then 'replay'
                   when q.quiet then null
                   when (c.source = 'outbox' or s.safety = 'capture')
                       and c.watermark_id::bigint < (select max(o.seq) from tidemark.outbox o) then 'events'
                   when (c.source = 'outbox' or s.safety = 'capture') and exists (
                       select from unnest(c.holes + c.fenced) hole (span) cross join lateral (
                           select from tidemark.outbox o where o.seq >= lower(hole.span) and o.seq < upper(hole.span) limit 1) o) then 'holes'
                   when not isempty(c.holes + c.fenced) and (isempty(c.fenced) or tidemark.fence_closed(
                       c.fence, case c.source when 'outbox' then 'tidemark.outbox'::regclass else tidemark.source_fence(s) end)) then 'holes'
                   when c.source = 'outbox' then null
                   when exists (
                       select from tidemark.pending_row p
                       where p.worker_id = w.id and p.source = c.source and p.shard = c.shard and p.next_attempt_at <= clock_timestamp()) then 'retry'
                   when c.decided_through is distinct from tidemark.source_place(c.watermark_ts, c.watermark_id) then 'edited'
                   when s.safety = 'clock' and hidden then 'unreadable'
                   when s.safety = 'clock' and (c.horizon > clock or c.metadata ? 'clock_back') then 'clock'
                   when c.phase = 'seeding' or c.phase = 'reconciling' and (s.safety in ('clock', 'declared') or isempty(c.holes + c.fenced)) then 'phase'
                   -- The window has to be read, and a sweep under way be ended.
                   when d.due and s.safety in ('clock', 'declared') and (s.sweep_window is not null or c.sweep ? 'next_xmin') then 'sweep'
                   -- In turns: it takes longer than all the rest. Nothing is lost meanwhile: a pass looks first.
                   when (extract(epoch from clock)::bigint + a.n) % 10 = 0 and (tidemark.source_problem(w, s, c)).problem is not null then 'changed'
               end as why
        from unnest(look_state.workers, look_state.sources, look_state.shards, look_state.epochs) with ordinality a (worker, source, shard, epoch, n)
        left join tidemark.worker w on w.worker = a.worker
        left join tidemark.worker_cursor c on c.worker = a.worker and c.source = a.source and c.shard = a.shard
        left join tidemark.heartbeat h on h.executor_id = a.worker || '/' || a.source || '/' || a.shard
        left join tidemark.source s on s.source = a.source
        cross join lateral (select tidemark.closed_gate(a.worker) as gate offset 0) g
        -- As tidemark.claim has it.
        cross join lateral (select c.source = 'outbox' and c.watermark_id::bigint > c.decided_through::bigint as edited offset 0) e_
        cross join lateral (
            -- As tidemark.source_plan has it.
            select c.source <> 'outbox' and (
                w.coalesce_window is not null and c.last_run_at > clock - w.coalesce_window
                    and not coalesce((c.last_run_summary ->> 'more')::boolean, false)
                or (w.off_peak is not null or w.lock_wait_limit is not null or w.replication_lag_limit is not null or c.metadata ? 'storm_until')
                    and tidemark.source_throttle(w, c) is not null) as quiet offset 0) q
        cross join lateral (
            select coalesce((c.sweep ->> 'done_at')::timestamptz, '-infinity') < clock - s.sweep_every or c.sweep ? 'next_xmin' as due) d
        cross join lateral (
            select case s.safety
                when 'declared' then clock - m.margin
                when 'clock' then oldest - m.margin end as horizon
            from (select greatest(s.margin, make_interval(secs => (10 ^ -coalesce(substring(s.timestamp_type from '\(([0-6])\)')::integer, 6))::double precision))) m (margin)) h_
        ) k) l
    order by l.n;
end
$$;
comment on function tidemark.look_state(text, text[], text[], integer[], bigint[]) is 'What tidemark.look can tell of each cursor without a look at its table: why it is to be woken; looks: its table is to be looked at, behind after_ts and after_id, into the numbers open, below horizon (null where nothing can be said of it, as for the safety sequence); sweep: a sweep is due, of transactions from this one on. Raises TM006, TM007.';
grant execute on function tidemark.look_state(text, text[], text[], integer[], bigint[]) to tidemark_executor;
