-- The findings of a cursor are closed by its passes, and of one that is gone there will be none.
create or replace function tidemark.cursors_delete(worker text, source text, first_shard integer default 0)
returns integer
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    gone constant text[] := array(
        select tidemark.executor_id(c.worker, c.source, c.shard) from tidemark.worker_cursor c
        where c.worker = cursors_delete.worker and c.source = cursors_delete.source
          and c.shard >= cursors_delete.first_shard);
    deleted integer;
begin
    -- In the order of tidemark.stale_check.
    delete from tidemark.silence s where s.executor_id = any (gone);
    perform tidemark.finding_close(f.kind, f.subject) from tidemark.finding f
    where f.closed_at is null
      -- Dead letters stay, and their finding with them (tidemark.letters_over).
      and (f.subject = any (gone) and f.kind <> 'cursor_dlq'
           -- Findings of the first cursor of the log have the worker's name (tidemark.cursor_name). A route, a service
           -- or a domain may have it too.
           or f.subject = cursors_delete.worker
              and tidemark.executor_id(cursors_delete.worker, 'outbox', 0) = any (gone)
              and f.kind in ('cursor_holes', 'cursor_lease_conflict', 'cursor_watermark_regression',
                             'worker_failing'));
    delete from tidemark.heartbeat h where h.executor_id = any (gone);
    delete from tidemark.cursor_sample s
    where s.worker = cursors_delete.worker and s.source = cursors_delete.source
      and s.shard >= cursors_delete.first_shard;
    delete from tidemark.worker_cursor c
    where c.worker = cursors_delete.worker and c.source = cursors_delete.source
      and c.shard >= cursors_delete.first_shard;
    get diagnostics deleted = row_count;
    return deleted;
end
$$;
comment on function tidemark.cursors_delete(text, text, integer) is
    'Deletes the cursors of a worker for a source, from this shard on, with their heartbeats, and closes their '
    'findings. The caller holds the locks on their leases. Returns how many it deleted.';
