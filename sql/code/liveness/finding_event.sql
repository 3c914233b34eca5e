create or replace function tidemark.finding_event()
returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    told constant text := case when new.closed_at is null then 'finding_opened' else 'finding_closed' end;
begin
    -- Only an enabled type is worth a subtransaction.
    if exists (select from tidemark.event_type t where t.domain = 'system' and t.type = told and t.enabled) then
        perform tidemark.system_event(told, new.severity, 'tidemark.finding', new.id::text, jsonb_build_object(
            'finding', new.id, 'kind', new.kind, 'subject', new.subject, 'severity', new.severity,
            'detail', left(new.detail, 2000), 'opened_at', new.opened_at, 'closed_at', new.closed_at,
                          'count', new.count));
    end if;
    return null;
end
$$;
comment on function tidemark.finding_event() is
    'Trigger: emits system/finding_opened or system/finding_closed, where that type is enabled.';

create or replace trigger finding_closed
after update of closed_at on tidemark.finding
for each row when (old.closed_at is null and new.closed_at is not null) execute function tidemark.finding_event();
comment on trigger finding_closed on tidemark.finding is 'Emits system/finding_closed, where that type is enabled.';

create or replace trigger finding_opened
after insert on tidemark.finding
for each row when (new.closed_at is null) execute function tidemark.finding_event();
comment on trigger finding_opened on tidemark.finding is
    'Emits system/finding_opened, where that type is enabled. A repeated finding is an update, and emits no event.';
