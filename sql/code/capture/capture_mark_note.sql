-- The upgrade makes the trigger functions again, in the transaction of the migration. A statement that waits for the
-- upgrade inside such a function goes on with the old one. So this takes two steps: the first notes which transactions
-- are under way after the upgrade; the second notes the last number of the log when these have ended.
create or replace function tidemark.capture_mark_note()
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    mark tidemark.capture_mark;
    busy text[];
begin
    if not exists (select from tidemark.capture_mark m where m.upto_seq is null)
        or current_setting('transaction_isolation') not like 'read %' then
        return;
    end if;
    select m.* into mark from tidemark.capture_mark m where m.upto_seq is null for update skip locked;
    if not found then
        return;
    end if;
    busy := tidemark.capture_busy();
    if mark.witness is null then
        update tidemark.capture_mark m set witness = busy;
    elsif not busy && mark.witness then
        update tidemark.capture_mark m
        set witness = null,
            upto_seq = (select q.last_value - (not q.is_called)::integer from tidemark.outbox_seq_seq q);
    end if;
end
$$;
comment on function tidemark.capture_mark_note() is
    'Part of tidemark.maintain: after an upgrade from a release whose captures wrote no inbound_id, notes the last '
    'number of the log that may be of such a capture. Two calls, and the second after all transactions that were under '
    'way at the first.';
