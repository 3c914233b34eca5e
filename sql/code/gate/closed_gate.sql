create or replace function tidemark.closed_gate(worker text)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    gate text;
begin
    if not tidemark.gate_open('routes.enabled') then
        return 'routes.enabled';
    elsif not tidemark.gate_open('worker.' || closed_gate.worker || '.enabled') then
        return 'worker.' || closed_gate.worker || '.enabled';
    elsif exists (select from tidemark.worker_cursor c
                  where c.worker = closed_gate.worker and c.paused_at is not null) then
        return 'paused';
    end if;
    -- Only then: who looks for silence must not wait for an operator's lock on the workers.
    if cardinality(tidemark.closed_domains()) > 0 then
        select 'domain.' || w.domains[1] || '.enabled' into gate
        from tidemark.worker w
        where w.worker = closed_gate.worker and cardinality(w.domains) > 0 and w.domains <@ tidemark.closed_domains();
        if found then
            return gate;
        end if;
    end if;
    -- A copy that is not armed must not consume, as dry runs, what its live routes would have delivered.
    return case
        when exists (select from tidemark.outbound_route r
                     where r.worker = closed_gate.worker and r.enabled and not r.dry_run)
            and not tidemark.armed() then 'stage'
    end;
end
$$;
comment on function tidemark.closed_gate(text) is
    'The first thing that keeps the worker from running: routes.enabled, worker.<name>.enabled, paused, '
    'domain.<name>.enabled (the gates of all the domains that the worker decides are closed), or stage (the worker '
    'has an enabled live route, and this installation is not armed). Null: nothing does.';
grant execute on function tidemark.closed_gate(text) to tidemark_reader, tidemark_executor;
