create or replace function tidemark.closed_gate(worker text)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return case
        when not tidemark.gate_open('routes.enabled') then 'routes.enabled'
        when not tidemark.gate_open('worker.' || closed_gate.worker || '.enabled')
            then 'worker.' || closed_gate.worker || '.enabled'
        when exists (select from tidemark.worker_cursor c
                     where c.worker = closed_gate.worker and c.paused_at is not null) then 'paused'
        when exists (select from tidemark.worker w where w.worker = closed_gate.worker and cardinality(w.domains) > 0
                         and w.domains <@ tidemark.closed_domains())
            then (select 'domain.' || w.domains[1] || '.enabled' from tidemark.worker w where w.worker = closed_gate.worker)
        -- A copy that is not armed must not consume, as dry runs, what its live routes would have delivered.
        when exists (select from tidemark.outbound_route r
                     where r.worker = closed_gate.worker and r.enabled and not r.dry_run)
            and not tidemark.armed() then 'stage'
    end;
end
$$;
comment on function tidemark.closed_gate(text) is 'What forbids the worker to run: routes.enabled, worker.<name>.enabled, paused, domain.<name>.enabled (where the gates of all the domains that it decides are closed), or stage (it has an enabled live route and this installation is not armed). Null: nothing.';
revoke all on function tidemark.closed_gate(text) from public;
grant execute on function tidemark.closed_gate(text) to tidemark_reader, tidemark_executor;
