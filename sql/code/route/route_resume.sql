-- public
create or replace function tidemark.route_resume(route_code text, reason text)
returns boolean
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
    select tidemark.route_paused(route_code, false, reason)
$$;
comment on function tidemark.route_resume(text, text) is
    'Ends the pause of a route (tidemark.route_pause): what is due is tried at once, in order, retries and parked '
    'events at their time. Returns whether that changed anything. Raises TM004.';
grant execute on function tidemark.route_resume(text, text) to tidemark_admin;
