create or replace function tidemark.captures_follow_type()
returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform tidemark.capture_make(s.route_code)
    from tidemark.inbound_route r join tidemark.capture_stale s on s.route_code = r.route_code
    where r.domain = new.domain and r.type = new.type;
    return null;
end
$$;
comment on function tidemark.captures_follow_type() is
    'Trigger: makes the functions of captured tables again where an event type''s payloads now need checks that they '
    'did not need before, or no longer do (tidemark.capture_make).';

create or replace trigger event_type_new_captures
after insert on tidemark.event_type
for each row execute function tidemark.captures_follow_type();
comment on trigger event_type_new_captures on tidemark.event_type is 'A capture function has its type written out.';

create or replace trigger event_type_captures
after update on tidemark.event_type
for each row when (old.unchecked <> new.unchecked) execute function tidemark.captures_follow_type();
comment on trigger event_type_captures on tidemark.event_type is 'A capture function has its type written out.';
