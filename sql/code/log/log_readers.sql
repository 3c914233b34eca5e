create or replace function tidemark.log_readers(domain text)
returns table (worker text, mark bigint, open int8multirange)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select c.worker, c.watermark_id::bigint, c.holes + c.fenced
    from tidemark.worker_cursor c join tidemark.worker w on w.worker = c.worker
    where c.source = 'outbox' and (w.domains is null or w.domains @> array[log_readers.domain])
      and exists (select from tidemark.outbound_route r where r.worker = w.worker)
    union all
    -- The log as a source, or the events of a captured table. The case keeps ids of other sources, which may be any
    -- text, from being cast to numbers before the join.
    select c.worker, case when s.safety in ('capture', 'sequence') then c.watermark_id::bigint end, c.holes + c.fenced
    from tidemark.worker_cursor c join tidemark.source s on s.source = c.source
    where s.safety = 'capture' or s.safety = 'sequence' and s.schema_name = 'tidemark' and s.table_name = 'outbox'
$$;
comment on function tidemark.log_readers(text) is
    'The cursors of workers that read payloads of this domain from the log. An event above mark, or in open, is not '
    'read yet.';
