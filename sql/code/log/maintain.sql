-- public
-- Not a security definer: others' tables are read with the rights of the calling role. The owner does the rest.
create or replace function tidemark.maintain()
returns table (action text, object text, detail text)
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
    return query select m.action, m.object, m.detail from tidemark.maintain_all() m;
end
$$;
comment on function tidemark.maintain() is
    'Keeps the log in shape. Makes partitions ahead, and drops those that are past retention and that no cursor, hole, '
    'pending delivery or dead letter without a payload needs. Erases payloads past the payload_retention of their '
    'domain (tidemark.payloads_expire). Deletes old idempotency keys, claims and raw records of commands, and answers '
    'of the API (10,000 of each a call), sums up and deletes rows of tidemark.captured, compares captured tables with '
    'their events by the server''s counts (tidemark.capture_count), notes which tables have rows to '
    'read (of those that the caller may read), opens and closes cursor_lag, capture_unwritten, command_waiting, '
    'producer_unproved and emit_unregistered, keeps the history (tidemark.history), closes findings that are over, and '
    'deletes findings past the setting finding.retention, and daemons that stopped a day ago, or have been silent for '
    'a day while another runs. Returns its actions, and the partitions that it kept, with the reason. Call it every '
    'minute. If it does not run, events are still accepted, and no partition is dropped.';
grant execute on function tidemark.maintain() to tidemark_admin, tidemark_executor;
