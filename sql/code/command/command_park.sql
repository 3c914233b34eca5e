create or replace function tidemark.command_park(call jsonb, at timestamptz)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
-- Also for the look of the foreign key at the claim, whose plan the session keeps.
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    lane constant text := coalesce(call ->> 'key', call ->> 'idempotency_key');
begin
    perform tidemark.command_kept(call);
    insert into tidemark.command_parked (service, idempotency_key, key, call, next_attempt_at)
    select call ->> 'service', call ->> 'idempotency_key', lane, call,
           case when tidemark.command_behind(call ->> 'service', lane) then 'infinity' else at end;
end
$$;
comment on function tidemark.command_park(jsonb, timestamptz) is
    'Parks a claimed command that did not run yet: due at this time, or when the parked ones of its ordering key are '
    'done.';
