-- public
create or replace function tidemark.event_evidence(seq bigint)
returns table (worker text, route_code text, attempt_no integer, outcome tidemark.outcome, reason text, detail text,
               decided_at timestamptz, idempotency_key text)
language sql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
    select w.worker, r.route_code, e.attempt_no, e.outcome, e.reason, tidemark.error_shown(e.reason, e.detail, l.login),
           e.decided_at, tidemark.attempt_key(w.worker, r.route_code, o.event_id)
    from (select tidemark.role_taken() as login offset 0) l
    cross join (
        select d.worker_id, d.route_id, 1 as attempt_no, d.outcome, d.reason, null as detail, d.decided_at
        from tidemark.decisions(null, null, event_evidence.seq, event_evidence.seq) d
        where d.seqs @> event_evidence.seq
        union all
        select a.worker_id, a.route_id, a.attempt_no, a.outcome, a.reason, a.detail, a.decided_at
        from tidemark.evidence_routes(null, event_evidence.seq, event_evidence.seq) p
        cross join lateral (
            select a.* from tidemark.attempt a
            where a.worker_id = p.worker_id and a.route_id = p.route_id and a.seq = event_evidence.seq
            offset 0) a) e
    join tidemark.worker_name w on w.id = e.worker_id
    left join tidemark.route_name r on r.id = e.route_id
    left join tidemark.outbox o on o.seq = event_evidence.seq
    order by w.worker, r.route_code, e.attempt_no
$$;
comment on function tidemark.event_evidence(bigint) is
    'The rows of tidemark.route_attempt for one event, by its number.';
grant execute on function tidemark.event_evidence(bigint) to tidemark_reader, tidemark_executor;
