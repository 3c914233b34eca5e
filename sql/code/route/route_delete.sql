-- public
create or replace function tidemark.route_delete(route_code text, reason text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    route tidemark.outbound_route;
    problem text;
    advice text;
begin
    -- A pass that stages an event for the route holds a lock that conflicts with this one, or fails afterwards and is
    -- tried again without the route.
    select r.* into route from tidemark.outbound_route r where r.route_code = route_delete.route_code for update;
    if not found then
        raise exception using errcode = 'TM004', message = format('there is no route "%s"', route_delete.route_code),
            hint = 'Routes: select route_code from tidemark.outbound_route;';
    end if;
    select p.problem, p.advice into problem, advice from (
        select 'it is enabled', format('Switch it off first: tidemark route disable %s', route.route_code)
        where route.enabled
        union all
        select 'deliveries of it are pending',
               'Enable it' || case when route.paused_at is not null then ' and resume it' else '' end || ' until they '
               'are sent or dead letters (with retry_policy {"max_attempts": 1} soon): tidemark pending list --route '
               || route.route_code
        from (select from tidemark.pending p where p.route_id = route.id limit 1) p
        union all
        select 'it has open dead letters',
               'Replay or discard them: tidemark dead-letter list --route ' || route.route_code
        from (select from tidemark.open_letter l where l.route_id = route.id limit 1) l
        union all
        select format('replay %s of it is not over', j.id),
               format('Cancel it: tidemark route replay %s --cancel %s', route.route_code, j.id)
        from tidemark.replay_job j
        where j.route_id = route.id and j.finished_at is null and j.cancelled_at is null
        union all
        -- It would wait for the route for ever.
        select format('job %s of its dead letters is not over', j.id),
               format('Cancel it: tidemark dead-letter job cancel %s', j.id)
        from tidemark.letter_job j where j.route_id = route.id and j.finished_at is null) p (problem, advice)
    limit 1;
    perform tidemark.deletion('route', route.route_code, route_delete.reason, problem, advice);
    insert into tidemark.former_name (kind, id, name) values ('route', route.id, route.route_code);
    delete from tidemark.outbound_route r where r.id = route.id;
end
$$;
comment on function tidemark.route_delete(text, text) is
    'Deletes a route that is off and owes nothing. Its evidence and its resolved dead letters stay, under its code; a '
    'route that is made again with that code goes on with them. Raises TM004, TM005 (no reason; or it is enabled, or '
    'deliveries, dead letters, replays or jobs of it are open).';
grant execute on function tidemark.route_delete(text, text) to tidemark_admin;
