-- Views for operators. Their cost does not grow with the number of candidates.

create or replace function governance.rows_estimated(schema_name text, table_name text)
returns numeric
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select sum(c.reltuples::numeric) filter (where c.reltuples >= 0)
    from pg_class c
    where c.relkind = 'r'
      and c.oid = any (tidemark.relation_tree(to_regclass(format('%I.%I', schema_name, table_name))))
$$;
comment on function governance.rows_estimated(text, text) is
    'How many rows a table had at the last ANALYZE, with its partitions; null: it was never analyzed.';

create or replace function governance.stale_count()
returns bigint
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
    -- One range of the index, from the scan's position: the rows before it were judged, or belong to an old ruleset.
    select count(*) from (
        select from governance.verdict v
        where v.stale_after < clock_timestamp() and v.stale_after > (
            select coalesce(min(c.watermark_ts), '-infinity') from tidemark.worker_cursor c
            where c.worker = 'gov_candidate_scan' and c.source = 'governance_verdict')
        limit 10000) v
$$;
comment on function governance.stale_count() is
    'How many expired verdicts wait for gov_candidate_scan; 10000: or more.';

create or replace view governance.summary as
select r.ruleset_version, r.is_current,
       coalesce(t.candidates, 0) as candidates,
       coalesce(t.candidates - t.gated, 0) as pending,
       coalesce(t.states, '{}') as states,
       coalesce(t.verdicts, '{}') as verdicts,
       coalesce(t.dirty, 0) as dirty,
       a.snapshot_ref, a.ended_at as audited_at
from governance.ruleset r
left join lateral (
    select sum(x.n) filter (where x.stage = 'candidate')::bigint as candidates,
           coalesce(sum(x.n) filter (where x.stage = 'input'), 0)::bigint as gated,
           sum(x.n) filter (where x.stage = 'mark')::bigint as dirty,
           jsonb_object_agg(x.state, x.n) filter (where x.stage = 'input' and x.n <> 0) as states,
           jsonb_object_agg(x.state, x.n) filter (where x.stage = 'verdict' and x.n <> 0) as verdicts
    from (select y.stage, y.state, sum(y.items)::bigint as n from governance.tally y
          where y.ruleset_version = r.ruleset_version group by y.stage, y.state) x) t on true
left join lateral (
    select s.snapshot_ref, s.ended_at from governance.snapshot s
    where s.ruleset_version = r.ruleset_version and s.ended_at is not null
    order by s.snapshot_ref desc limit 1) a on true;
comment on view governance.summary is
    'Candidates per ruleset, by input quality and verdict; pending: not through the gate; dirty: marks that wait; the '
    'latest full audit. Uses stored counts, and reads no candidate.';

create or replace view governance.progress as
select c.worker, c.source, c.shard, c.phase, c.watermark_ts, c.watermark_id,
       case c.source when 'governance_audit_step'
                          then (select coalesce(sum(x.rows_seen), 0)::bigint from governance.snapshot x)
                     else c.events_seen end as rows_seen,
       coalesce((k.of_ ->> 'batch_count')::bigint, 0) as batch_count,
       (k.of_ ->> 'dirty_marked')::bigint as dirty_marked,
       c.dead_lettered as dlq,
       (k.of_ ->> 'snapshot_ref')::bigint as snapshot_ref,
       k.of_ ->> 'ruleset_version' as ruleset_version,
       (k.of_ ->> 'started_at')::timestamptz as started_at,
       (k.of_ ->> 'ended_at')::timestamptz as ended_at,
       c.paused_at,
       b.done as batches_done,
       case when not b.through then case when b.total > b.done then b.total when b.total <= b.done then b.done end
            else b.done end as batches_total,
       l.seconds as lag_seconds, h.age_seconds as heartbeat_age_seconds, h.state as heartbeat
from tidemark.worker_cursor c
join tidemark.worker w on w.worker = c.worker
join tidemark.source s on s.source = c.source
left join tidemark.cursor_lag l on l.worker = c.worker and l.source = c.source and l.shard = c.shard
left join tidemark.heartbeat_health h on h.executor_id = tidemark.executor_id(c.worker, c.source, c.shard)
cross join lateral (select c.last_run_summary -> 'checkpoint') k (of_)
cross join lateral (
    -- Sizes are those of the last ANALYZE. An audit reads the inventory; any other worker reads its source.
    select ceil(c.events_seen::numeric / w.page_size)::bigint as done,
           ceil(governance.rows_estimated(s.schema_name, s.table_name) / w.shards / w.page_size)::bigint as total,
           c.phase <> 'seeding' as through
    where c.source <> 'governance_audit_step'
    union all
    select coalesce(ceil(a.rows_seen::numeric / a.page_rows), 0)::bigint,
           (select sum(ceil(governance.rows_estimated(i.schema_name, i.table_name) / a.page_rows))::bigint
            from governance.watched g join tidemark.source i on i.source = g.source where g.kind = 'birth'),
           a.ended_at is not null
    from (select 1) one (row) left join lateral (
        -- The audit under way, or the latest that ended.
        select x.* from governance.snapshot x where x.started_at is not null
        order by x.snapshot_ref desc limit 1) a on true
    where c.source = 'governance_audit_step') b
where c.worker = any (governance.worker_names());
comment on view governance.progress is
    'How far each worker has come in each source. rows_seen (for the audit: rows of the inventory), dlq and '
    'batch_count (pages that had rows): since the beginning. dirty_marked, snapshot_ref, ruleset_version, started_at, '
    'ended_at: of the latest page that had rows. batches_done, batches_total: full pages of a first sweep, or of the '
    'audit under way, by the size at the last ANALYZE (null: never analyzed); after it they are equal. lag_seconds as '
    'in tidemark.cursor_lag. Source: S2 39.6, 39.7.';

create or replace view governance.metrics as
with p as materialized (select * from governance.progress)
select (select s.dirty from governance.summary s where s.is_current) as dirty_depth,
       governance.stale_count() as stale_count,
       (select count(*) from (
            select from tidemark.worker w join tidemark.dead_letter d on d.worker_id = w.id and d.resolved_at is null
            where w.worker in (select worker from p) limit 10000) d) as dlq_depth,
       max(p.lag_seconds) as lag_seconds,
       max(p.heartbeat_age_seconds) as heartbeat_age_seconds,
       sum(p.batches_done)::bigint as batches_done,
       sum(coalesce(p.batches_total, p.batches_done))::bigint as batches_total
from p;
comment on view governance.metrics is
    'The metrics of S2 39.7 in one row: marks that wait (dirty_depth), expired verdicts that wait (stale_count; 10000: '
    'or more), open dead letters (dlq_depth; 10000: or more), the longest lag and the oldest beat of the five '
    'workers'' cursors, and their batches done and total.';

create or replace function governance.find(candidate_key text, ruleset_version text default null)
returns table (
    candidate_key text, ruleset_version text, collection_name text, entity_code text, canonical_address text,
    input_quality_state text, candidate_verdict text, dirty boolean, scanned_at timestamptz, stale_after timestamptz)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
    select c.candidate_key, c.ruleset_version, c.collection_name, c.entity_code, c.canonical_address,
           coalesce(g.input_quality_state, 'pending'), v.candidate_verdict,
           v.candidate_id is null or exists (select from governance.mark m where m.candidate_id = c.id), v.scanned_at,
           v.stale_after
    from governance.candidate c
    left join governance.gated g on g.candidate_id = c.id
    left join governance.verdict v on v.candidate_id = c.id
    where c.candidate_key = find.candidate_key
      and c.ruleset_version = coalesce(find.ruleset_version, (governance.current_ruleset()).ruleset_version)
$$;
comment on function governance.find(text, text) is
    'The state of one candidate, by its key; ruleset_version: null (default): the current one. dirty: the candidate '
    'waits for its first or next judgement.';
