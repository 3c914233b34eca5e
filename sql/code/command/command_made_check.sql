create or replace function tidemark.command_made_check(command tidemark.command)
returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    made constant text := 'command_' || command.id;
begin
    -- It runs with the rights of its owner as long as it is what command_set made.
    if not exists (select from tidemark.service s join pg_proc p on pg_get_userbyid(p.proowner) = s.role
                   where p.pronamespace = 'tidemark'::regnamespace and p.proname = made and p.prosecdef
                     and strpos(p.prosrc, 'command_settle') > 0 and s.service = command.service) then
        raise exception using errcode = 'undefined_function',
            message = format('tidemark.%s, which runs command %s, is missing or was changed', made, command.name),
            hint = 'Call tidemark.command_set for the command.';
    end if;
end
$$;
comment on function tidemark.command_made_check(tidemark.command) is
    'Raises 42883 where the function that runs a command is not what tidemark.command_set has made.';
