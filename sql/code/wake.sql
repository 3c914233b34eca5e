create or replace function tidemark.wake(domains text[])
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Only while a worker sleeps: commits with a notification are made one after the other, in the whole cluster.
    if tidemark.gate_open('notify.bridge_enabled') then
        perform pg_notify(left('tidemark_wake_' || d, 63), '') from (select distinct unnest(domains)) d (d);
    end if;
end
$$;
comment on function tidemark.wake(text[]) is 'Signals tidemark_wake_<domain> (cut at 63 bytes, no payload) when this transaction commits, where the gate notify.bridge_enabled is open. Called by emit while a worker sleeps: it holds the advisory lock (1953064301, 1) meanwhile. A signal that is missed loses nothing.';
revoke all on function tidemark.wake(text[]) from public;
