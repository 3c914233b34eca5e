create or replace function tidemark.closed_command(service text)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    gates constant text[] := array['commands.enabled', 'commands.' || closed_command.service || '.enabled'];
    open_ text[];
begin
    open_ := array(select s.key from tidemark.setting s where s.key = any (gates) and s.value = 'true');
    return case when gates[1] <> all (open_) then gates[1]
                when gates[2] <> all (open_) then gates[2] end;
end
$$;
comment on function tidemark.closed_command(text) is
    'The gate that keeps the commands of a service from running. Null: none.';
grant execute on function tidemark.closed_command(text) to tidemark_reader, tidemark_executor;
