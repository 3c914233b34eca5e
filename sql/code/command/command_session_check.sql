create or replace function tidemark.command_session_check(command text, before text[])
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    problem constant text := tidemark.command_session_problem(before);
begin
    if problem is not null then
        raise insufficient_privilege using message = format('command %s %s', command, problem),
            hint = 'A function drops the temporary objects that it creates, and prepares no statements.';
    end if;
end
$$;
comment on function tidemark.command_session_check(text, text[]) is
    'Raises 42501 where the session is not what it was before the command (tidemark.command_session). Cursors without '
    'hold that the command has left are closed.';
