create or replace function tidemark.capture_guard_check()
returns event_trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    stray record;
begin
    select t.tgname, c.relname, n.nspname, p.proname into stray
    from pg_event_trigger_ddl_commands() d
    join pg_trigger t on t.oid = d.objid
    join pg_proc p on p.oid = t.tgfoid
    join pg_class c on c.oid = t.tgrelid
    join pg_namespace n on n.oid = c.relnamespace
    where d.classid = 'pg_trigger'::regclass and p.pronamespace = 'tidemark'::regnamespace and n.nspname <> 'tidemark'
      and not exists (select from tidemark.inbound_route r
                      where r.source_object_kind = 'table' and r.source_schema = n.nspname
                        and r.source_table = c.relname)
    limit 1;
    if found then
        raise exception using errcode = 'TM005',
            message = format('trigger %I of %I.%I calls tidemark.%s, and the table has no inbound route', stray.tgname,
                             stray.nspname, stray.relname, stray.proname),
            hint = 'Register it first: tidemark.inbound_route_set. The guard is event trigger tidemark_capture_guard.';
    end if;
end
$$;
comment on function tidemark.capture_guard_check() is
    'Event trigger of tidemark.capture_guard: raises TM005 where a trigger would call a function of Tidemark on a '
    'table without an inbound route.';
