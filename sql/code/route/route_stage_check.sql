create or replace function tidemark.route_stage_check()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if new.enabled and not new.dry_run
        and (tg_op = 'INSERT' or not old.enabled or old.dry_run)
        and not tidemark.armed()
    then
        raise exception using errcode = 'TM008',
            message = format('route %s cannot be enabled and live: this installation is not live', new.route_code),
            hint = 'Leave dry_run on, or raise the stage: select tidemark.stage_set(''live'', ''why'');';
    end if;
    return new;
end
$$;
comment on function tidemark.route_stage_check() is
    'Trigger: raises TM008 where a route would become enabled and live in an installation that is not armed.';

create or replace trigger inbound_route_stage
before insert or update on tidemark.inbound_route
for each row execute function tidemark.route_stage_check();
comment on trigger inbound_route_stage on tidemark.inbound_route is 'No route is enabled and live before the stage is.';

create or replace trigger outbound_route_stage
before insert or update on tidemark.outbound_route
for each row execute function tidemark.route_stage_check();
comment on trigger outbound_route_stage on tidemark.outbound_route is
    'No route is enabled and live before the stage is.';
