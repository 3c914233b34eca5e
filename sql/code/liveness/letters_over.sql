-- One rule for tidemark.findings_over, which closes the finding, and for tidemark.queue_health, which leaves it out
-- until then.
create or replace function tidemark.letters_over(kind text, subject text)
returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_sort = off
set jit = off
as $$
    select letters_over.kind in ('cursor_dlq', 'dlq_overflow', 'event_unreadable') and (
        select l.id from tidemark.dead_letter l
        -- A value, no join, and the order of its index: of the letters of other workers nothing is read.
        where l.worker_id = (select w.id from tidemark.worker w
                             where w.worker = split_part(letters_over.subject, '/', 1))
          and l.resolved_at is null and (letters_over.kind <> 'event_unreadable' or l.error_code = 'unreadable')
          and letters_over.subject = case
              when letters_over.kind = 'cursor_dlq' and l.source <> 'outbox'
              then tidemark.executor_id(split_part(letters_over.subject, '/', 1), l.source, l.shard)
              else split_part(letters_over.subject, '/', 1) end
        order by l.error_code, l.source, l.shard limit 1) is null
$$;
comment on function tidemark.letters_over(text, text) is
    'True for a finding of dead letters where none of them is open any more.';
grant execute on function tidemark.letters_over(text, text) to tidemark_reader, tidemark_executor;
