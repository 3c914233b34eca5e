-- public
create or replace function tidemark.gate_set(gate text, open boolean, reason text default null)
returns boolean
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Whose gate it is stays until the commit: an open gate that outlives a deletion would be that of the next of this
    -- name. Closing waits for none, who may hold these rows for as long as a pass takes.
    if open then
        perform from tidemark.worker w where 'worker.' || w.worker || '.enabled' = gate for key share;
        perform from tidemark.domain d where 'domain.' || d.domain || '.enabled' = gate for key share;
        perform from tidemark.service s where 'commands.' || s.service || '.enabled' = gate for key share;
    else
        perform from tidemark.worker w where 'worker.' || w.worker || '.enabled' = gate for key share skip locked;
        perform from tidemark.domain d where 'domain.' || d.domain || '.enabled' = gate for key share skip locked;
        perform from tidemark.service s where 'commands.' || s.service || '.enabled' = gate for key share skip locked;
    end if;
    if gate is null or gate not in ('routes.enabled', 'commands.enabled', 'notify.bridge_enabled',
                                    'notify.listeners_enabled')
        and not exists (select from tidemark.worker w
                        where 'worker.' || w.worker || '.enabled' = gate and w.source <> 'kafka')
        and not exists (select from tidemark.domain d where 'domain.' || d.domain || '.enabled' = gate)
        and not exists (select from tidemark.service s where 'commands.' || s.service || '.enabled' = gate)
    then
        raise exception using errcode = 'TM004', message = format('there is no gate "%s"', gate),
            hint = 'Gates: routes.enabled, commands.enabled, notify.bridge_enabled, notify.listeners_enabled, '
                'worker.<name>.enabled of each worker in tidemark.worker that does not read Kafka, '
                'domain.<name>.enabled of each domain in tidemark.domain, and commands.<name>.enabled of each service '
                'in tidemark.service.';
    end if;
    if open is null then
        raise exception using errcode = 'TM005',
            message = format('gate %s cannot be set to null, which is neither open nor closed', gate),
            hint = 'true opens it, false closes it.';
    end if;
    perform set_config('tidemark.reason', coalesce(reason, ''), true);
    insert into tidemark.setting as s (key, value, description)
    values (gate, open::text, 'Gate.')
    on conflict (key) do update set value = excluded.value;
    return open;
end
$$;
comment on function tidemark.gate_set(text, boolean, text) is
    'Opens or closes a gate: routes.enabled, worker.<name>.enabled, domain.<name>.enabled, commands.enabled, '
    'commands.<service>.enabled, notify.bridge_enabled or notify.listeners_enabled. A domain has no gate until one is '
    'set. Every worker obeys within a second. Raises TM004 for an unknown gate, TM005 for null.';
grant execute on function tidemark.gate_set(text, boolean, text) to tidemark_admin;
