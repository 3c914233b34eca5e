-- public
create or replace function tidemark.source_remove(source text, reason text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    readers text;
begin
    if coalesce(btrim(source_remove.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'removing a source needs a reason';
    end if;
    perform set_config('tidemark.reason', source_remove.reason, true);
    -- This lock conflicts with the lock of this row under which cursors are made.
    perform from tidemark.source s where s.source = source_remove.source for update;
    if not found then
        raise exception using errcode = 'TM004', message = format('there is no source "%s"', source_remove.source),
            hint = 'Sources: select source from tidemark.source;';
    end if;
    select string_agg(distinct c.worker, ', ') into readers from tidemark.worker_cursor c
    where c.source = source_remove.source;
    if readers is not null then
        raise exception using errcode = 'TM005',
            message = format('source %s cannot be removed: it is read by %s', source_remove.source, readers),
            hint = 'Take it from the worker first: select tidemark.worker_source_remove(''worker'', ''source'', '
                '''why'');';
    end if;
    delete from tidemark.source s where s.source = source_remove.source;
end
$$;
comment on function tidemark.source_remove(text, text) is
    'Removes a source that has no cursor. The table and everything else stay. Raises TM004, TM005 (no reason, or '
    'workers still read the source: the message names them).';
grant execute on function tidemark.source_remove(text, text) to tidemark_admin;
