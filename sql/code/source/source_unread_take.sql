-- Not a security definer: the tables are read with the rights of the role that calls tidemark.maintain.
create or replace function tidemark.source_unread_take()
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    c tidemark.worker_cursor;
    u record;
begin
    for c in select x.* from tidemark.worker_cursor x where x.source <> 'outbox'
             order by x.worker, x.source, x.shard loop
        u := tidemark.cursor_unread(c);
        if u.looked then
            perform tidemark.source_unread_note(c.worker, c.source, c.shard, u.unread, u.since, u.first_id, u.upto_id,
                                                u.upto_ts);
        end if;
    end loop;
end
$$;
comment on function tidemark.source_unread_take() is
    'Notes for each cursor of a table that the caller may read whether it has rows to read, for '
    'tidemark.cursor_unread.';
grant execute on function tidemark.source_unread_take() to tidemark_executor;
