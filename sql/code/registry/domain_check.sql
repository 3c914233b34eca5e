-- A role that the session has set is no more than the login is.
create or replace function tidemark.domain_check(domain text, place text, login name)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if exists (select from tidemark.domain_emitter e join pg_roles r on r.rolname = e.role
               where e.domain = domain_check.domain and pg_has_role(login, r.oid, 'member'))
        -- Who may write the table needs no leave to emit.
        or pg_has_role(login, 'tidemark_owner', 'member')
    then
        return true;
    end if;
    raise exception using errcode = 'TM014', message = format('%s%s may not emit into domain %s', place, login,
        domain_check.domain),
        hint = case domain_check.domain when 'system' then 'Only Tidemark emits into it. Use a domain of your own.'
            else format('As an operator: select tidemark.domain_grant(%L, %L);', domain_check.domain, login) end;
end
$$;
comment on function tidemark.domain_check(text, text, name) is
    'Returns true, or raises TM014 where the login (tidemark.login) may not emit into a restricted domain. place '
    'begins the message.';
