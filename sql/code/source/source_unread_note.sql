create or replace function tidemark.source_unread_note(
    worker text,
    source text,
    shard integer,
    unread boolean,
    since timestamptz,
    first_id bigint,
    upto_id bigint,
    upto_ts timestamptz)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    n constant tidemark.source_unread := row(
        source_unread_note.worker, source_unread_note.source, source_unread_note.shard, clock_timestamp(),
        source_unread_note.unread, source_unread_note.since, source_unread_note.first_id, source_unread_note.upto_id,
        source_unread_note.upto_ts);
begin
    -- If another call of maintain is noting this row, do not wait for it.
    perform from tidemark.source_unread u
    where (u.worker, u.source, u.shard) = (n.worker, n.source, n.shard) for update skip locked;
    if found then
        update tidemark.source_unread u
        set noted_at = n.noted_at, unread = n.unread, since = n.since, first_id = n.first_id, upto_id = n.upto_id,
            upto_ts = n.upto_ts
        where (u.worker, u.source, u.shard) = (n.worker, n.source, n.shard);
    elsif not exists (
        select from tidemark.source_unread u where (u.worker, u.source, u.shard) = (n.worker, n.source, n.shard)) then
        insert into tidemark.source_unread select n.*
        where exists (
            select from tidemark.worker_cursor c where (c.worker, c.source, c.shard) = (n.worker, n.source, n.shard))
        on conflict do nothing;
    end if;
end
$$;
comment on function tidemark.source_unread_note(text, text, integer, boolean, timestamptz, bigint, bigint,
                                                timestamptz) is
    'Notes the result of tidemark.cursor_unread for a cursor. Does nothing while another call notes the same cursor.';
grant execute on function tidemark.source_unread_note(text, text, integer, boolean, timestamptz, bigint, bigint,
                                                      timestamptz) to tidemark_executor;
