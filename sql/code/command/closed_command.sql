create or replace function tidemark.closed_command(service text)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    own constant text := 'commands.' || closed_command.service || '.enabled';
    open_ constant text[] := array(
        select s.key from tidemark.setting s where s.key in ('commands.enabled', own) and s.value = 'true');
begin
    return case when 'commands.enabled' <> all (open_) then 'commands.enabled' when own <> all (open_) then own end;
end
$$;
comment on function tidemark.closed_command(text) is
    'The gate that keeps the commands of a service from running. Null: none.';
grant execute on function tidemark.closed_command(text) to tidemark_reader, tidemark_executor;
