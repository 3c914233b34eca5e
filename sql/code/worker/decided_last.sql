create or replace function tidemark.decided_last(worker text)
returns bigint
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_nestloop = on
set jit = off
as $$
    select max(n.seq)
    from tidemark.worker w
    cross join lateral tidemark.evidence_routes(w.id, 0, 9223372036854775807) r
    cross join lateral (
        (select d.last_seq as seq from tidemark.decision d
         where d.worker_id = w.id and d.route_id = r.route_id order by d.last_seq desc limit 1)
        union all
        (select a.seq from tidemark.attempt a
         where a.worker_id = w.id and a.route_id = r.route_id order by a.seq desc limit 1)) n
    where w.worker = decided_last.worker
$$;
comment on function tidemark.decided_last(text) is
    'The highest number that the worker has evidence for: of a worker that was deleted and made again. Null: none.';
