-- public
create or replace function tidemark.route_pause(route_code text, reason text)
returns boolean
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
    select tidemark.route_paused(route_code, true, reason)
$$;
comment on function tidemark.route_pause(text, text) is
    'Pauses a route: its worker goes on to decide its events, and they wait in tidemark.pending, in the order of their '
    'keys; no delivery of it begins, also none of a replay or of a dead letter, until tidemark.route_resume. Obeyed '
    'within a second; deliveries under way may end, but for those inside the database and of Go handlers, which are '
    'rolled back and wait too. A route that is off or in dry run is paused for when it goes live. Returns whether that '
    'changed anything. Raises TM004.';
grant execute on function tidemark.route_pause(text, text) to tidemark_admin;
