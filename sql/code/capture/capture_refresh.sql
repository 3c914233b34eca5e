create or replace function tidemark.capture_refresh()
returns setof text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '3s'
as $$
declare
    name text;
begin
    return query
    select m.name from tidemark.capture_stale s cross join lateral tidemark.capture_make(s.route_code) m (name)
    where m.name is not null;
    if not exists (select from pg_proc p where p.pronamespace = 'tidemark'::regnamespace
                                           and p.proname ~ '^capture_[0-9]+$'
                   and not exists (select from pg_trigger t where t.tgfoid = p.oid)) then
        return;
    end if;
    -- The same lock as in capture_make: a session that has made a function puts a trigger on it before it releases the
    -- lock.
    lock table tidemark.inbound_route in share update exclusive mode;
    for name in
        select p.proname from pg_proc p
        where p.pronamespace = 'tidemark'::regnamespace and p.proname ~ '^capture_[0-9]+$'
          and not exists (select from pg_trigger t where t.tgfoid = p.oid)
    loop
        execute format('drop function tidemark.%I()', name);
    end loop;
end
$$;
comment on function tidemark.capture_refresh() is
    'Makes the functions of attached tables again where the table, the route or Tidemark has changed, and drops '
    'functions that no trigger calls. Returns the functions that it made. Until then captures use the general path, '
    'which costs twenty times as much and has the same result. Called by tidemark.maintain, by inbound_route_set and '
    'by a migration.';
grant execute on function tidemark.capture_refresh() to tidemark_admin;
