create or replace function tidemark.role_taken()
returns name
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
    -- The login is asked in any case: in maintenance the role is that of the session, and the code a table owner's.
    select coalesce(nullif(current_setting('role'), 'none'), l.login)::name from tidemark.login() l (login)
$$;
comment on function tidemark.role_taken() is
    'The role whose rights decide what a security definer shows: the one that the session has taken by set role, as '
    'the console takes tidemark_reader for viewers, otherwise the login. '
    'Raises TM015 in maintenance (tidemark.login).';
