create or replace function tidemark.error_shown(code text, message text, role name)
returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    -- Who runs workers reads payloads. The message of a target's or a table's error may quote one.
    select case
        when message is null or pg_has_role(role, 'tidemark_executor', 'member') then message
        when code like 'TM%' then 'Tidemark refused it (see docs/errors.md)'
        when code in ('57014', '55P03') then 'it took too long'
        when code like '22%' then 'a value cannot be read, or is out of range'
        when code like '23%' then 'a constraint of the database is violated'
        when code like '42%' then 'an object, a right or the statement is wrong'
        when code like 'P0%' then 'the function raised an error'
        else 'the message is for operators' end
$$;
comment on function tidemark.error_shown(text, text, name) is 'The message of an error as a role may see it: members of tidemark_executor and tidemark_admin see it as it is, others what its code means, since the message may quote a payload.';
revoke all on function tidemark.error_shown(text, text, name) from public;
grant execute on function tidemark.error_shown(text, text, name) to tidemark_reader, tidemark_executor;
