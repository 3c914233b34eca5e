-- The table of jobs belongs to the application, so nothing of Tidemark's is attached to it: who made the jobs says so,
-- in the words of River's own client. A text that is notified twice in a transaction is sent once.
create or replace function tidemark.river_wake(options jsonb)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    if tidemark.gate_open('notify.bridge_enabled') then
        perform pg_notify(coalesce(options ->> 'schema', 'public') || '.river_insert',
                          jsonb_build_object('queue', coalesce(options ->> 'queue', 'default'))::text);
    end if;
end
$$;
comment on function tidemark.river_wake(jsonb) is
    'Signals River''s clients, when this transaction commits, that a queue has jobs to work, where the gate '
    'notify.bridge_enabled is open. The channel is <schema>.river_insert, the payload the name of the queue, both '
    'from a route''s options. Sends one signal for each queue and transaction. A client that misses the signal finds '
    'the jobs at its next poll.';
grant execute on function tidemark.river_wake(jsonb) to tidemark_executor;
