create or replace function tidemark.capture_gap_resolve(gap tidemark.capture_gap, resolution text, reason text)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    resolved tidemark.capture_gap;
begin
    update tidemark.capture_gap g
    set resolved_at = clock_timestamp(), resolution = capture_gap_resolve.resolution, resolved_by = tidemark.login(),
        reason = capture_gap_resolve.reason
    where g.id = gap.id and g.resolved_at is null returning g.* into resolved;
    if found then
        insert into tidemark.audit (action, object, reason, before, after)
        values ('capture_gap_' || resolution, 'capture_gap ' || gap.id, capture_gap_resolve.reason, to_jsonb(gap),
                to_jsonb(resolved));
        perform tidemark.finding_close('capture_gap', gap.name);
        -- What is over must not be found again: the next comparison begins after it.
        delete from tidemark.capture_count c where c.name = gap.name;
    end if;
end
$$;
comment on function tidemark.capture_gap_resolve(tidemark.capture_gap, text, text) is
    'Ends an open gap and its finding. tidemark.audit records it.';
