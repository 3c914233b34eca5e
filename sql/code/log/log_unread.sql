create or replace function tidemark.log_unread(domain text, numbers bigint[])
returns table (seq bigint, worker text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
begin
    return query
    with reader as (
        select c.worker, c.watermark_id::bigint as mark, c.holes + c.fenced as open, null as captured
        from tidemark.worker_cursor c join tidemark.worker w on w.worker = c.worker
        where c.source = 'outbox' and (w.domains is null or w.domains @> array[log_unread.domain])
          and exists (select from tidemark.outbound_route r where r.worker = w.worker)
        union all
        -- The log as a source, or the events of a captured table. The case keeps ids of other sources, which may be any
        -- text, from being cast to numbers before the join.
        select c.worker, case when s.safety in ('capture', 'sequence') then c.watermark_id::bigint end,
               c.holes + c.fenced,
               case when s.safety = 'capture' then format('%I.%I', s.schema_name, s.table_name) end
        from tidemark.worker_cursor c join tidemark.source s on s.source = c.source
        where s.safety = 'capture' or s.safety = 'sequence' and s.schema_name = 'tidemark' and s.table_name = 'outbox'
    )
    select n.seq, r.worker
    from reader r join unnest(log_unread.numbers) n (seq) on n.seq > r.mark or r.open @> n.seq
    -- The worker of a captured table passes over all other events (tidemark.source_query).
    -- Not exists: as a part of an or, PostgreSQL 18 reads the whole log for it once, with each payload.
    where r.captured is null
       or (select o.subject_table = r.captured and o.payload ->> 'operation' = 'insert'
           from tidemark.outbox o where o.seq = n.seq);
end
$$;
comment on function tidemark.log_unread(text, bigint[]) is
    'Which of these events of the domain a worker that reads payloads from the log has still to read, and which '
    'worker.';
