create or replace function tidemark.finding_event(type text, f tidemark.finding)
returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    perform tidemark.system_event(
        finding_event.type, f.severity, 'tidemark.finding', f.id::text, jsonb_build_object(
            'finding', f.id, 'kind', f.kind, 'cause', tidemark.finding_cause(f.kind), 'subject', f.subject,
            'severity', f.severity, 'detail', left(f.detail, 2000), 'opened_at', f.opened_at,
            'closed_at', f.closed_at, 'count', f.count),
        must => true)
    where exists (select from tidemark.event_type t
                  where t.domain = 'system' and t.type = finding_event.type and t.enabled);
    return true;
exception when others then
    if not tidemark.is_transient(sqlstate) then
        raise;
    end if;
    return false; -- the log is locked, say
end
$$;
comment on function tidemark.finding_event(text, tidemark.finding) is
    'Emits system/finding_opened or system/finding_closed about a finding, where that type is enabled. False: it '
    'cannot be emitted now.';
