-- public
create or replace function tidemark.domain_delete(domain text, reason text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    problem text;
    advice text;
begin
    perform from tidemark.domain d where d.domain = domain_delete.domain for update;
    if not found then
        raise exception using errcode = 'TM004', message = format('there is no domain "%s"', domain_delete.domain),
            hint = 'Domains: select domain from tidemark.domain;';
    end if;
    select p.problem, p.advice into problem, advice from (
        select 'it is Tidemark''s own', 'It stays.' where domain_delete.domain in ('system', 'commands')
        union all
        select format('event type %s is in it', t.type), 'Delete its types first: tidemark type delete.'
        from tidemark.event_type t where t.domain = domain_delete.domain
        union all
        select format('route %s is for it', r.route_code), 'Delete the route first, or give it another domain.'
        from tidemark.outbound_route r where r.domain = domain_delete.domain
        union all
        select format('inbound route %s is for it', r.route_code), 'Delete the inbound route first.'
        from tidemark.inbound_route r where r.domain = domain_delete.domain
        union all
        select format('worker %s reads it', w.worker), 'Change its domains: tidemark worker set.'
        from tidemark.worker w where w.domains @> array[domain_delete.domain]
        union all
        select format('executor %s covers it', h.executor_id), 'Register the executor anew, with other domains.'
        from tidemark.heartbeat h
        where h.domain_scope @> array[domain_delete.domain] and not tidemark.is_cursor(h.executor_id)
        union all
        -- Without the gate, what waits behind it would be delivered.
        select 'its gate is closed', format('Open it first: tidemark gate open domain.%s.enabled', domain_delete.domain)
        where domain_delete.domain = any (tidemark.closed_domains())) p (problem, advice)
    limit 1;
    perform tidemark.deletion('domain', domain_delete.domain, domain_delete.reason, problem, advice);
    insert into tidemark.audit (action, object, reason, before)
    select 'domain_revoke', 'domain ' || e.domain, domain_delete.reason, jsonb_build_object('role', e.role)
    from tidemark.domain_emitter e where e.domain = domain_delete.domain;
    delete from tidemark.domain_emitter e where e.domain = domain_delete.domain;
    delete from tidemark.setting s where s.key = 'domain.' || domain_delete.domain || '.enabled';
    delete from tidemark.domain d where d.domain = domain_delete.domain;
end
$$;
comment on function tidemark.domain_delete(text, text) is
    'Deletes a domain that has no types and that no route, worker or executor names, with its grants and its gate. '
    'Its events stay in the log. Raises TM004, TM005 (no reason, it is in use, its gate is closed, or it is '
    'Tidemark''s own).';
grant execute on function tidemark.domain_delete(text, text) to tidemark_admin;
