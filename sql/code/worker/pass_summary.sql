create or replace function tidemark.pass_summary(
    worker text,
    batch tidemark.batch,
    evidence tidemark.evidence[],
    results tidemark.result[],
    fallbacks integer)
returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    -- The results are decisions, too.
    decided tidemark.evidence[] := evidence;
begin
    if cardinality(results) > 0 then
        decided := decided || array(
            select row(r.route_id, r.outcome, r.reason, r.detail,
                       (select sum(upper(s) - lower(s)) from unnest(r.seqs) s), r.seqs)::tidemark.evidence
            from unnest(results) r where r.fresh);
    end if;
    return jsonb_build_object(
        'worker', worker, 'status', 'ran', 'events', batch.events, 'late', batch.late,
        'decided', coalesce((select jsonb_object_agg(d.outcome, d.n) from (
            select e.outcome, sum(e.events) as n from unnest(decided) e group by e.outcome) d), '{}'),
        'watermark', batch.watermark, 'fallbacks', fallbacks)
        || case when batch.blocked_by is null then '{}' else jsonb_build_object('blocked_by', batch.blocked_by) end;
end
$$;
comment on function tidemark.pass_summary(text, tidemark.batch, tidemark.evidence[], tidemark.result[], integer) is
    'The summary of a pass, as route_worker_run returns it and worker_cursor.last_run_summary keeps it.';
grant execute on function tidemark.pass_summary(text, tidemark.batch, tidemark.evidence[], tidemark.result[], integer)
    to tidemark_executor;
