create or replace function tidemark.command_park(call jsonb, due timestamptz, error_count integer, sqlstate_ text)
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
    patience constant text := current_setting('lock_timeout');
    behind boolean;
begin
    perform tidemark.command_kept(call);
    -- Before the command has its position: none that was released before is behind it.
    behind := tidemark.command_behind(call ->> 'service', lane);
    -- Two sessions may begin a lane at once, and neither sees what the other has parked. The second waits here for the
    -- first. If that commits, the command is behind it: no session releases any until this transaction ends. It does
    -- not wait until the statement_timeout ends the pass, which would pass for a command that did not come to an end.
    perform set_config('lock_timeout', '2s', true);
    loop
        insert into tidemark.command_parked (service, idempotency_key, key, call, error_count, next_attempt_at,
                                             sqlstate)
        values (call ->> 'service', call ->> 'idempotency_key', lane, call, command_park.error_count,
                case when behind then 'infinity' else due end, sqlstate_)
        on conflict (service, key) where next_attempt_at < 'infinity' do nothing;
        exit when found;
        behind := true;
    end loop;
    perform set_config('lock_timeout', patience, true);
end
$$;
comment on function tidemark.command_park(jsonb, timestamptz, integer, text) is
    'Parks a claimed command: due at this time, or when the parked ones of its ordering key are done. error_count, '
    'sqlstate_: of its failure; 0 and null: it did not run yet. Raises lock_not_available (55P03) where a transaction '
    'that has parked one of the same ordering key stays open for two seconds.';
