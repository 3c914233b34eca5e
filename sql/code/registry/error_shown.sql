-- Inlined by its callers, which ask for many errors at once: so it has no search_path, and names all that it calls.
create or replace function tidemark.error_shown(code text, message text, role name)
returns text
language sql stable
as $$
    -- Who runs workers reads payloads. The message of a target's or a table's error may quote one.
    select case
        when message is null or pg_catalog.pg_has_role(role, 'tidemark_executor', 'member') then message
        else tidemark.error_means(code) end
$$;
comment on function tidemark.error_shown(text, text, name) is
    'The message of an error as a role may see it: members of tidemark_executor and tidemark_admin see the message, '
    'other roles see what its code means, since the message may quote a payload.';
grant execute on function tidemark.error_shown(text, text, name) to tidemark_reader, tidemark_executor;
