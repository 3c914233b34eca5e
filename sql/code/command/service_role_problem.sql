create or replace function tidemark.service_role_problem(role name)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select case
        when starts_with(r.rolname, 'pg_') then 'is one of PostgreSQL''s own'
        when r.rolcanlogin then 'can log in'
        when r.rolsuper or r.rolcreaterole or r.rolbypassrls or r.rolreplication
            then 'may do more than run functions: it is a superuser, or has CREATEROLE, BYPASSRLS or REPLICATION'
        -- Its commands could then name the functions that run them, which it owns, and change these.
        when has_schema_privilege(r.oid, 'tidemark'::regnamespace, 'usage') then 'has rights in the schema tidemark'
        when has_schema_privilege(r.oid, 'tidemark'::regnamespace, 'create') then 'has rights in the schema tidemark'
    end
    from pg_roles r where r.rolname = role
    union all
    select 'does not exist' where not exists (select from pg_roles r where r.rolname = role)
$$;
comment on function tidemark.service_role_problem(name) is
    'Why a role cannot be the role of a service, as the end of a sentence. Null: it can.';
grant execute on function tidemark.service_role_problem(name) to tidemark_reader, tidemark_admin;
