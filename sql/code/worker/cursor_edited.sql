-- A pass leaves watermark and decided_through equal; a rewind lowers the watermark, and notes it. A watermark that was
-- edited upwards skips events silently. Cursors of tables have their own rule (tidemark.source_next).
create or replace function tidemark.cursor_edited(c tidemark.worker_cursor)
returns boolean
language sql immutable parallel safe
as $$
    select case when c.source = 'outbox'
                then c.watermark_id::bigint > c.decided_through::bigint
                  or c.watermark_id::bigint < coalesce(c.rewound_to, c.decided_through::bigint)
                else false end
$$;
comment on function tidemark.cursor_edited(tidemark.worker_cursor) is
    'True where the watermark of a cursor of the log is not where a pass or tidemark.worker_rewind left it: it was '
    'edited by hand, or restored.';
grant execute on function tidemark.cursor_edited(tidemark.worker_cursor) to tidemark_executor;
