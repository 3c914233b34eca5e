create or replace function tidemark.route_target_check()
returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    found record;
begin
    -- A route can always be switched off, whatever it was restored as.
    if tg_op = 'UPDATE' and (new.target_kind, new.target_ref, new.options, new.transform, new.columns)
            is not distinct from (old.target_kind, old.target_ref, old.options, old.transform, old.columns)
        and (old.enabled or not new.enabled) and (new.dry_run or not old.dry_run)
    then
        return new;
    end if;
    select p.problem, p.hint into found from tidemark.target_problem(new.target_kind, new.target_ref, new.options) p;
    if found.problem is null then
        select p.problem, p.hint into found from tidemark.transform_problem(new) p;
    end if;
    if found.problem is not null then
        raise exception using errcode = 'TM005',
            message = format('route %s: %s', new.route_code, found.problem), hint = found.hint;
    end if;
    return new;
end
$$;
comment on function tidemark.route_target_check() is
    'Trigger: raises TM005 where the kind, the reference or the options of a route''s target break '
    'tidemark.target_rules, or where tidemark.transform_problem finds one. It checks when they change, and when the '
    'route is switched on or goes live.';

create or replace trigger outbound_route_target
before insert or update on tidemark.outbound_route
for each row execute function tidemark.route_target_check();
comment on trigger outbound_route_target on tidemark.outbound_route is
    'No route names a target or a transform that cannot be.';
