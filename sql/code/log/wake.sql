create or replace function tidemark.wake(domains text[], ids jsonb default null, listeners boolean default false)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Signal only while a worker sleeps, or if an operator wants signals: commits with a notification run one after the
    -- other, in the whole cluster. PostgreSQL folds equal signals of a transaction into one. Every login may listen.
    if listeners or tidemark.gate_open('notify.bridge_enabled') then
        perform pg_notify(left('tidemark_wake_' || d.domain, 63), case
            when not listeners then ''
            when ids is null or exists (select from tidemark.domain r where r.domain = d.domain and r.restricted)
            then jsonb_build_object('layer', 'event', 'event_domain', d.domain)::text
            else ids::text end)
        from (select distinct unnest(domains)) d (domain);
    end if;
end
$$;
comment on function tidemark.wake(text[], jsonb, boolean) is
    'Signals tidemark_wake_<domain> (cut at 63 bytes) when this transaction commits, if the gate notify.bridge_enabled '
    'is open or, with listeners, in any case. The signal is empty or, with listeners, has the ids of one event; it has '
    'only the domain where a statement made several events or the domain is restricted to roles. It never has content. '
    'Equal signals of a transaction arrive as one. emit calls it while a worker sleeps, which holds the advisory lock '
    '(1953064301, 1) meanwhile, and on every emit if the gate notify.listeners_enabled is open. A missed signal loses '
    'no event. Source: S4 fn_queue_wake_notify_event_outbox.';
