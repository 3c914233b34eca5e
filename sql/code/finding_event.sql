create or replace function tidemark.finding_event()
returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    told constant text := case when new.closed_at is null then 'finding_opened' else 'finding_closed' end;
begin
    -- A subtransaction is paid for only where somebody wants the event.
    if exists (select from tidemark.event_type t where t.domain = 'system' and t.type = told and t.enabled) then
        perform tidemark.system_event(told, new.severity, 'tidemark.finding', new.id::text, jsonb_build_object(
            'finding', new.id, 'kind', new.kind, 'subject', new.subject, 'severity', new.severity, 'detail', left(new.detail, 2000),
            'opened_at', new.opened_at, 'closed_at', new.closed_at, 'count', new.count));
    end if;
    return null;
end
$$;
comment on function tidemark.finding_event() is 'Trigger: emits system/finding_opened or system/finding_closed, where that type is enabled.';
revoke all on function tidemark.finding_event() from public;
