create or replace function tidemark.command_claims_of(event_id uuid)
returns table (service text, idempotency_key text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
-- The planner takes random values for all over the table, and cannot know how few of its parts the index names.
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
begin
    return query select m.service, m.idempotency_key from tidemark.command_claim m
                 where m.event_id = command_claims_of.event_id order by m.service;
end
$$;
comment on function tidemark.command_claims_of(uuid) is
    'The claims of an event id. Reads those that came since the last vacuum of tidemark.command_claim, and few others.';
grant execute on function tidemark.command_claims_of(uuid) to tidemark_reader;
