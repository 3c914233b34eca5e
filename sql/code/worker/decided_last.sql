create or replace function tidemark.decided_last(worker text)
returns bigint
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select greatest((select max(d.last_seq) from tidemark.decision d where d.worker_id = w.id),
                    (select max(a.seq) from tidemark.attempt a where a.worker_id = w.id))
    from tidemark.worker w where w.worker = decided_last.worker
$$;
comment on function tidemark.decided_last(text) is
    'The highest number that the worker has evidence for: of a worker that was deleted and made again. Null: none.';
