-- What Tidemark's roles must be for the role $1 to install or upgrade it in this database: a row for each statement, in
-- order. It is needed for each migrate up, for the first (install), or is advice, and "without" tells what is lost then.
-- Package migrate runs what is not done; `tidemark migrate roles --print` prints all of it for a DBA.
with server as (
    select current_setting('server_version_num')::integer >= 160000 as has_set_option
), installer as (
    select r.rolname, r.rolsuper, quote_ident(r.rolname) as name from pg_catalog.pg_roles r where r.rolname = $1
), role (n, name) as (
    values (1, 'tidemark_owner'), (2, 'tidemark_admin'), (3, 'tidemark_executor'), (4, 'tidemark_emitter'), (5, 'tidemark_reader')
), known as (
    select (select count(*) from role x where to_regrole(x.name) is not null) = 5 as all_roles
)
select x.statement, x.done, x.needed, x.without from (
    select r.n, format('create role %s nologin', r.name) as statement, to_regrole(r.name) is not null as done,
           'install' as needed, '' as without
    from role r
    union all
    select 6, 'grant tidemark_reader, tidemark_emitter, tidemark_executor to tidemark_admin',
           case when k.all_roles then pg_has_role('tidemark_admin', 'tidemark_reader', 'usage')
                                      and pg_has_role('tidemark_admin', 'tidemark_emitter', 'usage')
                                      and pg_has_role('tidemark_admin', 'tidemark_executor', 'usage') else false end,
           'install', ''
    from known k
    union all
    -- ADMIN without SET counts as member from PostgreSQL 16 on, and is what a role gets that has made the other.
    select 7, format('grant tidemark_owner to %s%s', i.name, case when s.has_set_option then ' with inherit true, set true' else '' end),
           case when i.rolsuper then true when not k.all_roles then false
                when s.has_set_option then pg_has_role(i.rolname, 'tidemark_owner', 'set')
                else pg_has_role(i.rolname, 'tidemark_owner', 'member') end,
           'always', ''
    from installer i, server s, known k
    union all
    select 8, format('grant tidemark_admin to %s%s', i.name, case when s.has_set_option then ' with inherit true, set true' else '' end),
           case when i.rolsuper then true when not k.all_roles then false
                when pg_has_role(i.rolname, 'tidemark_admin', 'usage') then true
                when s.has_set_option then pg_has_role(i.rolname, 'tidemark_admin', 'set')
                else pg_has_role(i.rolname, 'tidemark_admin', 'member') end,
           'advice', format('%s can install, and not operate', i.rolname)
    from installer i, server s, known k
    union all
    select 9, format('grant create on database %I to %s', current_database(), i.name),
           i.rolsuper or has_database_privilege(i.rolname, current_database(), 'create')
           or exists (select from pg_namespace n where n.nspname = 'tidemark'),
           'install', ''
    from installer i
    union all
    select 10, 'grant pg_read_all_stats to tidemark_owner',
           case when k.all_roles then pg_has_role('tidemark_owner', 'pg_read_all_stats', 'usage') else false end,
           'advice', 'tables cannot be sources with safety clock, and blame lacks ages'
    from known k
) x
order by x.n
