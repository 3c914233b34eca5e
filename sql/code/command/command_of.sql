-- In PL/pgSQL, which keeps the plan: it is called for each record.
create or replace function tidemark.command_of(call jsonb)
returns tidemark.command
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    found_ tidemark.command;
begin
    select k.* into found_ from tidemark.command k
    where k.service = call ->> 'service' and k.command = call ->> 'command'
      and k.version = (call ->> 'command_version')::integer;
    return found_;
end
$$;
comment on function tidemark.command_of(jsonb) is
    'The registered command that a call names. Null: there is none.';
