create or replace function tidemark.named_again()
returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    was integer;
begin
    if tg_op = 'UPDATE' then
        if exists (select from tidemark.former_name f
                   where f.kind = tg_argv[0] and f.name = to_jsonb(new) ->> tg_argv[1]) then
            raise exception using errcode = 'TM005',
                message = format('%s "%s" was deleted, and its evidence has that name', tg_argv[0],
                                 to_jsonb(new) ->> tg_argv[1]),
                hint = format('Choose another name, or make %s "%s" again.', tg_argv[0],
                              to_jsonb(new) ->> tg_argv[1]);
        end if;
        return new;
    end if;
    delete from tidemark.former_name f where f.kind = tg_argv[0] and f.name = to_jsonb(new) ->> tg_argv[1]
    returning f.id into was;
    new.id := coalesce(was, new.id);
    return new;
end
$$;
comment on function tidemark.named_again() is
    'Trigger: gives a route or worker (first argument) that is made again under a name (column: second argument) the '
    'id that it had, so that its evidence is its own again and no attempt gets a number twice. Raises TM005 where '
    'another is renamed to such a name.';

create or replace trigger outbound_route_named_again
before insert or update of route_code on tidemark.outbound_route
for each row execute function tidemark.named_again('route', 'route_code');
comment on trigger outbound_route_named_again on tidemark.outbound_route is 'A code is always the same route.';

create or replace trigger worker_named_again
before insert on tidemark.worker
for each row execute function tidemark.named_again('worker', 'worker');
comment on trigger worker_named_again on tidemark.worker is 'A name is always the same worker.';
