-- public
create or replace function tidemark.domain_revoke(domain text, role text, reason text default null)
returns setof tidemark.domain
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    delete from tidemark.domain_emitter e where e.domain = domain_revoke.domain and e.role = domain_revoke.role;
    if not found then
        raise exception using errcode = 'TM004',
            message = format('domain %s is not granted to %s', domain_revoke.domain, domain_revoke.role),
            hint = 'Grants: select * from tidemark.domain_emitter;';
    end if;
    insert into tidemark.audit (action, object, reason, before)
    values ('domain_revoke', 'domain ' || domain_revoke.domain, domain_revoke.reason,
            jsonb_build_object('role', domain_revoke.role));
    -- The domain stays restricted when no grant is left: a revoke never opens it.
    return query select d.* from tidemark.domain d where d.domain = domain_revoke.domain;
end
$$;
comment on function tidemark.domain_revoke(text, text, text) is
    'Takes back a grant of tidemark.domain_grant. The domain stays restricted, also after the last grant: '
    'tidemark.domain_set(…, ''{"restricted": false}'') opens it to all emitters. Raises TM004 for an unknown grant.';
grant execute on function tidemark.domain_revoke(text, text, text) to tidemark_admin;
