create or replace function tidemark.command_kept(call jsonb)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    perform from tidemark.command k
    where k.service = call ->> 'service' and k.command = call ->> 'command'
      and k.version = (call ->> 'command_version')::integer for key share;
    if not found then
        raise exception using errcode = 'TM009',
            message = format('no command was parked: %s.%s/v%s is not registered', call ->> 'service',
                             call ->> 'command', call ->> 'command_version'),
            hint = 'It was deleted just now. Ask again: then it is rejected.';
    end if;
end
$$;
comment on function tidemark.command_kept(jsonb) is
    'Keeps the registered command that a call names from being deleted until this transaction ends: nothing would try '
    'what is parked for it. Raises TM009 where it was deleted.';
