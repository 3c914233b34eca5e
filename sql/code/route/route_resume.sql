-- public
create or replace function tidemark.route_resume(route_code text, reason text)
returns boolean
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    changed boolean;
begin
    perform set_config('tidemark.reason', coalesce(route_resume.reason, ''), true);
    update tidemark.outbound_route r set paused_at = null
    where r.route_code = route_resume.route_code and r.paused_at is not null;
    changed := found;
    if not changed and not exists (
        select from tidemark.outbound_route r where r.route_code = route_resume.route_code)
    then
        raise exception using errcode = 'TM004', message = format('there is no route "%s"', route_resume.route_code),
            hint = 'Routes: select route_code from tidemark.outbound_route;';
    end if;
    return changed;
end
$$;
comment on function tidemark.route_resume(text, text) is
    'Ends the pause of a route (tidemark.route_pause): what is due is tried at once, in order, retries and parked '
    'events at their time. Returns whether that changed anything. Raises TM004.';
grant execute on function tidemark.route_resume(text, text) to tidemark_admin;
