create or replace function tidemark.route_findings()
returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    code constant text := old.route_code;
    sends constant boolean := tg_op = 'UPDATE' and new.route_code = old.route_code and new.enabled and not new.dry_run;
    paused constant boolean := tg_op = 'UPDATE' and new.paused_at is not null;
    off constant boolean := tg_op = 'UPDATE' and new.route_code = old.route_code and not new.enabled;
begin
    if not sends or paused then
        perform tidemark.finding_close(k.kind, code)
        from unnest('{target_down,credentials_refused,two_copies}'::text[]) k (kind);
    end if;
    if not sends then
        perform tidemark.finding_close('route_misconfigured', code);
    end if;
    if not off then
        perform tidemark.finding_close('route_gone', code);
    end if;
    return null;
end
$$;
comment on function tidemark.route_findings() is
    'Trigger: closes findings that a change of the route settles. target_down, credentials_refused, two_copies and '
    'route_misconfigured close when the route sends nothing any more, the first three also when it '
    'is paused, route_gone when it is enabled again or removed.';

create or replace trigger outbound_route_findings
after update of route_code, enabled, dry_run, paused_at or delete on tidemark.outbound_route
for each row execute function tidemark.route_findings();
comment on trigger outbound_route_findings on tidemark.outbound_route is 'No finding of a route outlives what it says.';
