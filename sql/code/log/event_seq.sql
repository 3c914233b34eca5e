create or replace function tidemark.event_seq(event_id uuid)
returns bigint
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
    select o.seq from tidemark.outbox o
    where o.created_at >= tidemark.uuid_time(event_seq.event_id)
      and o.created_at < tidemark.uuid_time(event_seq.event_id) + interval '1 millisecond'
      and o.event_id = event_seq.event_id
$$;
comment on function tidemark.event_seq(uuid) is
    'The number of the event in the log, found through the time in its id. Null: the log does not have the event, or '
    'has it no longer.';
grant execute on function tidemark.event_seq(uuid) to tidemark_reader, tidemark_executor;
