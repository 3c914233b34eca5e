create or replace function tidemark.configuration_trigger(route_code text, wanted text, reason text)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    l record;
begin
    select c.trigger, format('%I.%I', c.schema_name, c.table_name) as name into l
    from tidemark.capture_list c where c.route_code = configuration_trigger.route_code;
    if wanted is null or wanted = l.trigger then
        return;
    elsif wanted not in ('attached', 'always') or l.trigger in ('always', 'altered') then
        raise exception using errcode = 'TM005',
            message = format('its trigger is "%s" and cannot become "%s"', l.trigger, wanted),
            hint = format('attached or always; to change it: tidemark capture detach %s', l.name);
    elsif to_regclass(l.name) is null then
        raise exception using errcode = 'TM004', message = format('there is no table %s', l.name),
            hint = 'Make the table first, or leave trigger out.';
    end if;
    perform tidemark.capture_attach(l.name::regclass, reason, always => wanted = 'always');
end
$$;
comment on function tidemark.configuration_trigger(text, text, text) is
    'Attaches the table of an inbound route (tidemark.capture_attach) where it is not; wanted: attached or always, '
    'null: as it is.';
grant execute on function tidemark.configuration_trigger(text, text, text) to tidemark_admin;
