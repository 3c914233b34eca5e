-- public
create or replace function tidemark.command_disallow(
    service text, producer text, command text default null, version integer default null, reason text default null)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform set_config('tidemark.reason', coalesce(command_disallow.reason, ''), true);
    delete from tidemark.command_producer p
    where p.service = command_disallow.service and p.producer = command_disallow.producer
      and p.command is not distinct from command_disallow.command
      and p.version is not distinct from command_disallow.version;
    if not found then
        raise exception using errcode = 'TM004',
            message = format('producer "%s" has no such row in the allowlist of %s', command_disallow.producer,
                             command_disallow.service),
            hint = 'Rows: select * from tidemark.command_producer;';
    end if;
end
$$;
comment on function tidemark.command_disallow(text, text, text, integer, text) is
    'Takes back what tidemark.command_allow has allowed: the row with exactly this command and version. Raises TM004 '
    'where there is none.';
grant execute on function tidemark.command_disallow(text, text, text, integer, text) to tidemark_admin;
