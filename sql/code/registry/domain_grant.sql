-- public
create or replace function tidemark.domain_grant(domain text, role text, reason text default null)
returns setof tidemark.domain
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform set_config('tidemark.reason', coalesce(domain_grant.reason, ''), true);
    perform from tidemark.domain d where d.domain = domain_grant.domain for update;
    if not found then
        raise exception using errcode = 'TM004', message = format('there is no domain "%s"', domain_grant.domain),
            hint = 'Domains: select domain from tidemark.domain;';
    elsif domain_grant.domain = 'system' then
        raise exception using errcode = 'TM005', message = 'domain system is Tidemark''s own and is granted to no role',
            hint = 'Make a domain: select tidemark.domain_set(''shop'');';
    elsif not exists (select from pg_roles r where r.rolname = domain_grant.role) then
        raise exception using errcode = 'TM005', message = format('there is no role "%s"', domain_grant.role),
            hint = 'Roles: select rolname from pg_roles;';
    end if;
    insert into tidemark.domain_emitter (domain, role) values (domain_grant.domain, domain_grant.role)
    on conflict do nothing;
    if found then
        insert into tidemark.audit (action, object, reason, after)
        values ('domain_grant', 'domain ' || domain_grant.domain, domain_grant.reason,
                jsonb_build_object('role', domain_grant.role));
    end if;
    return query update tidemark.domain d set restricted = true where d.domain = domain_grant.domain returning d.*;
end
$$;
comment on function tidemark.domain_grant(text, text, text) is
    'Lets a role (a login, or a role with logins as members) emit into a domain, which is restricted to such roles '
    'from then on. The role needs tidemark_emitter as well. Raises TM004 (unknown domain), TM005 (unknown role, '
    'domain system).';
grant execute on function tidemark.domain_grant(text, text, text) to tidemark_admin;
