create or replace function tidemark.closed_command(service text)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return case
        when not tidemark.gate_open('commands.enabled') then 'commands.enabled'
        when not tidemark.gate_open('commands.' || closed_command.service || '.enabled')
            then 'commands.' || closed_command.service || '.enabled'
    end;
end
$$;
comment on function tidemark.closed_command(text) is
    'The gate that keeps the commands of a service from running. Null: none.';
grant execute on function tidemark.closed_command(text) to tidemark_reader, tidemark_executor;
