-- One rule for tidemark.findings_over, which closes the finding, and for tidemark.queue_health, which leaves it out
-- until then.
create or replace function tidemark.letters_over(kind text, subject text)
returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select letters_over.kind in ('cursor_dlq', 'dlq_overflow', 'event_unreadable') and not exists (
        select from tidemark.dead_letter l join tidemark.worker w on w.id = l.worker_id
        where l.resolved_at is null and (letters_over.kind <> 'event_unreadable' or l.error_code = 'unreadable')
          and letters_over.subject = case
              when letters_over.kind = 'cursor_dlq' and l.source <> 'outbox'
              then tidemark.executor_id(w.worker, l.source, l.shard) else w.worker end)
$$;
comment on function tidemark.letters_over(text, text) is
    'True for a finding of dead letters where none of them is open any more.';
grant execute on function tidemark.letters_over(text, text) to tidemark_reader, tidemark_executor;
