create or replace function tidemark.letter_event(letter tidemark.dead_letter)
returns tidemark.outbox
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
    event tidemark.outbox;
begin
    if not letter.payload_in_log then
        return jsonb_populate_record(null::tidemark.outbox, letter.event_snapshot);
    end if;
    -- Numbers are used again after a failover or a restore: the identity tells whether it is the same event.
    select o.* into event from tidemark.outbox o where o.seq = letter.seq and o.event_id = letter.event_id;
    return event;
end
$$;
comment on function tidemark.letter_event(tidemark.dead_letter) is
    'The event of a dead letter, from its snapshot, or from the log where the payload is left there. Null: the event '
    'is gone.';
grant execute on function tidemark.letter_event(tidemark.dead_letter) to tidemark_executor;
