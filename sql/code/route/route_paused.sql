create or replace function tidemark.route_paused(route_code text, pause boolean, reason text)
returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    changed boolean;
begin
    perform set_config('tidemark.reason', coalesce(route_paused.reason, ''), true);
    update tidemark.outbound_route r
    set paused_at = case when route_paused.pause then clock_timestamp() end
    where r.route_code = route_paused.route_code and (r.paused_at is null) = route_paused.pause;
    changed := found;
    if not changed and not exists (
        select from tidemark.outbound_route r where r.route_code = route_paused.route_code)
    then
        raise exception using errcode = 'TM004', message = format('there is no route "%s"', route_paused.route_code),
            hint = 'Routes: select route_code from tidemark.outbound_route;';
    end if;
    return changed;
end
$$;
comment on function tidemark.route_paused(text, boolean, text) is
    'What tidemark.route_pause (true) and route_resume (false) do.';
