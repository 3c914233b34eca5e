-- The findings of the five workers as events of the domain governance, by the names of S2 39.0, 39.6 and 39.7.

create or replace function governance.finding_type(kind text, subject text)
returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    -- One fact is one event: if S2 has a name of its own for a worker's finding, the event has that name.
    select case
        when w.worker = 'gov_handoff_intake' and kind = 'cursor_lag' then 'handoff_lag'
        when w.worker = 'gov_handoff_intake' and kind = 'cursor_dlq' then 'handoff_dlq'
        when w.worker = 'gov_handoff_intake' and kind = 'cursor_silent_gap' then 'handoff_silent_gap'
        when w.worker = 'gov_handoff_intake' and kind = 'dlq_overflow' then 'handoff_dlq_overflow'
        when w.worker = 'gov_candidate_scan' and kind = 'cursor_lag' then 'candidate_scan_lag'
        when kind = 'dlq_overflow' then 'cursor_dlq_overflow'
        when kind in ('cursor_lag', 'cursor_dlq', 'cursor_silent_gap', 'cursor_lease_conflict',
                      'cursor_watermark_regression', 'group_invalidation_storm') then kind end
    from (select split_part(subject, '/', 1)) w (worker)
    where w.worker = any (governance.worker_names())
$$;
comment on function governance.finding_type(text, text) is
    'The event type of a finding; null: the finding is not of the five workers, or S2 does not name it. subject: '
    'worker, or worker/source/shard.';

create or replace function governance.finding_told()
returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    type_ constant text := governance.finding_type(new.kind, new.subject);
begin
    if type_ is null or not governance.tells(type_) then
        return null;
    end if;
    begin
        -- Leave out the detail, which may quote a row: the domain is metadata only.
        perform governance.tell(type_, jsonb_build_array(jsonb_build_object(
            'subject', new.subject, 'severity', new.severity, 'finding_id', new.id, 'count', new.count)));
    exception when others then
        -- An operator's schema for the type must not roll back the finding.
        raise warning 'event governance/% was not emitted: %', type_, sqlerrm using errcode = sqlstate;
    end;
    return null;
end
$$;
comment on function governance.finding_told() is
    'Trigger: emits a finding of the five workers as an event of the domain governance, where its type is enabled.';

create or replace trigger governance_finding_opened
after insert on tidemark.finding
for each row when (new.closed_at is null) execute function governance.finding_told();
comment on trigger governance_finding_opened on tidemark.finding is 'Emits the findings of the pack governance.';
create or replace trigger governance_finding_rose
after update of severity on tidemark.finding
for each row when (new.closed_at is null and new.severity > old.severity) execute function governance.finding_told();
comment on trigger governance_finding_rose on tidemark.finding is
    'Emits a finding of the pack governance again when it becomes worse.';
