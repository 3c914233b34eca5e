create or replace function tidemark.configuration_own(kind text, name text, file text, take boolean, reason text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    was text;
begin
    -- Another file that takes it at the same moment is waited for here.
    insert into tidemark.owned as o (kind, name, file)
    values (configuration_own.kind, configuration_own.name, configuration_own.file)
    on conflict do nothing;
    if not found then
        select o.file into was from tidemark.owned o
        where o.kind = configuration_own.kind and o.name = configuration_own.name for update;
        if was = configuration_own.file then
            return;
        elsif not configuration_own.take then
            raise exception using errcode = 'TM005',
                message = format('%s %s is of the file "%s", not of "%s"', configuration_own.kind,
                                 configuration_own.name, was, configuration_own.file),
                hint = 'Leave it out here; or move it: with --take this file takes it over, and the other must no '
                    'longer have it.';
        end if;
        update tidemark.owned o set file = configuration_own.file, since = clock_timestamp()
        where o.kind = configuration_own.kind and o.name = configuration_own.name;
    end if;
    insert into tidemark.audit (action, object, reason, before, after)
    values ('configuration_own', configuration_own.kind || ' ' || configuration_own.name, configuration_own.reason,
            to_jsonb(was), to_jsonb(configuration_own.file));
end
$$;
comment on function tidemark.configuration_own(text, text, text, boolean, text) is
    'Marks a thing as that of a file. Raises TM005 where it is of another file, unless take.';
grant execute on function tidemark.configuration_own(text, text, text, boolean, text) to tidemark_admin;
