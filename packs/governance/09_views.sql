-- What people look at. None of it costs more when there are more candidates.

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
    where s.ruleset_version = r.ruleset_version and s.ended_at is not null order by s.snapshot_ref desc limit 1) a on true;
comment on view governance.summary is 'Candidates per ruleset, by input quality and verdict; pending: not through the gate; dirty: marks that wait; the latest full audit. From counts: it reads no candidate.';

create or replace view governance.progress as
select c.worker, c.source, c.shard, c.phase, c.watermark_ts, c.watermark_id,
       c.events_seen as rows_seen,
       (c.last_run_summary -> 'result' ->> 'batch_count')::bigint as batch_count,
       (c.last_run_summary -> 'result' ->> 'dirty_marked')::bigint as dirty_marked,
       c.dead_lettered as dlq,
       (c.last_run_summary -> 'result' ->> 'snapshot_ref')::bigint as snapshot_ref,
       c.last_run_summary -> 'result' ->> 'ruleset_version' as ruleset_version,
       (c.last_run_summary ->> 'started_at')::timestamptz as started_at,
       (c.last_run_summary ->> 'ended_at')::timestamptz as ended_at,
       c.paused_at
from tidemark.worker_cursor c
where c.worker in ('gov_backfill_sweep', 'gov_handoff_intake', 'gov_input_gate', 'gov_candidate_scan', 'gov_periodic_full_audit');
comment on view governance.progress is 'How far each worker has come in each source, and its latest page. rows_seen and dlq: since the beginning; batch_count, dirty_marked: of that page. Source: S2 39.6.';

create or replace function governance.find(candidate_key text, ruleset_version text default null)
returns table (
    candidate_key text, ruleset_version text, collection_name text, entity_code text, canonical_address text,
    input_quality_state text, candidate_verdict text, dirty boolean, scanned_at timestamptz, stale_after timestamptz)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
    select c.candidate_key, c.ruleset_version, c.collection_name, c.entity_code, c.canonical_address,
           coalesce(g.input_quality_state, 'pending'), v.candidate_verdict,
           v.candidate_id is null or exists (select from governance.mark m where m.candidate_id = c.id), v.scanned_at, v.stale_after
    from governance.candidate c
    left join governance.gated g on g.candidate_id = c.id
    left join governance.verdict v on v.candidate_id = c.id
    where c.candidate_key = find.candidate_key
      and c.ruleset_version = coalesce(find.ruleset_version, (governance.current_ruleset()).ruleset_version)
$$;
comment on function governance.find(text, text) is 'The state of one candidate, by its key; ruleset_version: null (default): the current one. dirty: it is to be judged, for the first time or anew.';
