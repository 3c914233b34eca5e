-- The pack governance (source document S2). A new install keeps the settings that an operator may have changed. The
-- tables belong to tidemark_owner. The workers' functions run with the rights of the role that runs the workers, a
-- member of tidemark_executor.

set local search_path = pg_catalog, pg_temp;

do $$
begin
    -- From PostgreSQL 16 on, ADMIN alone makes a member that cannot become the owner.
    if not has_database_privilege(current_database(), 'create')
        or not pg_has_role('tidemark_owner',
                           case when current_setting('server_version_num')::int >= 160000 then 'set'
                                else 'member' end) then
        raise exception using errcode = '42501',
            message = format('%s may not install the pack governance: it makes schemas that belong to tidemark_owner',
                             current_user),
            hint = format('Install it as the role that ran tidemark migrate up, or: grant create on database %I to %I; '
                          'grant tidemark_owner to %2$I;',
                          current_database(), current_user);
    end if;
    -- 13_rights.sql returns to this role.
    perform set_config('governance.installer', current_setting('role'), true);
end
$$;

create schema if not exists governance authorization tidemark_owner;
create schema if not exists source_names authorization tidemark_owner;
set local role tidemark_owner;
comment on schema governance is
    'Candidates for governance, found in tables that are read and never written. Pack governance. Source: S2.';
grant usage on schema governance to tidemark_admin, tidemark_executor, tidemark_reader;
