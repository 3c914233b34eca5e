-- public
create or replace function tidemark.source_delete(source text, reason text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    readers text;
begin
    -- This lock conflicts with the lock of this row under which cursors are made.
    perform from tidemark.source s where s.source = source_delete.source for update;
    if not found then
        raise exception using errcode = 'TM004', message = format('there is no source "%s"', source_delete.source),
            hint = 'Sources: select source from tidemark.source;';
    end if;
    select string_agg(distinct c.worker, ', ') into readers from tidemark.worker_cursor c
    where c.source = source_delete.source;
    perform tidemark.deletion('source', source_delete.source, source_delete.reason, 'it is read by ' || readers,
        format('Take it from the worker first: tidemark worker detach WORKER %s', source_delete.source));
    delete from tidemark.source s where s.source = source_delete.source;
end
$$;
comment on function tidemark.source_delete(text, text) is
    'Deletes a source that has no cursor. The table and everything else stay. Raises TM004, TM005 (no reason, or '
    'workers still read the source: the message names them).';
grant execute on function tidemark.source_delete(text, text) to tidemark_admin;
