create or replace function tidemark.closed_gate(worker text)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    own constant text := 'worker.' || closed_gate.worker || '.enabled';
    gate text;
    found_ text[];
    paused boolean;
    live boolean;
begin
    -- A copy that is not armed does not take the commands of the original.
    if closed_gate.worker = 'commands' then
        if not exists (
            select from tidemark.worker_cursor c where c.worker = 'commands' and c.source = 'outbox') then
            return case
                when not tidemark.gate_open('commands.enabled') then 'commands.enabled'
                when exists (select from tidemark.worker_cursor c
                             where c.worker = 'commands' and c.paused_at is not null) then 'paused'
                when not tidemark.armed() then 'stage' end;
        end if;
    end if;
    select array(
               select s.key from tidemark.setting s
               where s.key in ('routes.enabled', own) and s.value = 'true'
                  or s.key like 'domain.%.enabled' and s.value <> 'true'),
           exists (select from tidemark.worker_cursor c
                   where c.worker = closed_gate.worker and c.paused_at is not null),
           exists (select from tidemark.outbound_route r
                   where r.worker = closed_gate.worker and r.enabled and not r.dry_run)
    into found_, paused, live;
    gate := case when 'routes.enabled' <> all (found_) then 'routes.enabled'
                 when own <> all (found_) then own
                 when paused then 'paused' end;
    -- Read the workers only then: a check for silence must not wait for an operator's lock on them.
    if gate is null and cardinality(found_) > 2 then
        gate := (
            select 'domain.' || w.domains[1] || '.enabled' from tidemark.worker w
            where w.worker = closed_gate.worker and cardinality(w.domains) > 0
              and w.domains <@ tidemark.closed_domains());
    end if;
    -- A copy that is not armed must not consume, as dry runs, what its live routes would have delivered.
    if gate is null and live and not tidemark.armed() then
        gate := 'stage';
    end if;
    return gate;
end
$$;
comment on function tidemark.closed_gate(text) is
    'The first thing that keeps the worker from running: routes.enabled, worker.<name>.enabled, paused, '
    'domain.<name>.enabled (the gates of all the domains that the worker decides are closed), or stage (the worker '
    'has an enabled live route, and this installation is not armed). For the consumer of commands: commands.enabled, '
    'paused, or stage (not armed). Null: nothing does.';
grant execute on function tidemark.closed_gate(text) to tidemark_reader, tidemark_executor;
