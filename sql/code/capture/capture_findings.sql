create or replace function tidemark.capture_findings()
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    r record;
    unwritten text[] := '{}';
    clock constant timestamptz := clock_timestamp(); -- which an index can use as a condition
begin
    perform tidemark.capture_gaps_note(null);
    for r in
        select i.route_code, sum(c.rows) as changes, max(c.at) as last,
               (array_agg(c.reason order by c.at desc))[1] as reason
        from tidemark.captured c join tidemark.inbound_route i on i.id = c.route_id
        where c.at > clock - interval '1 hour'
          and (c.outcome = 'failed' or c.outcome = 'unregistered' and not exists (
              select from tidemark.event_type t where t.domain = i.domain and t.type = i.type and t.enabled))
        group by 1 order by 1
    loop
        unwritten := unwritten || r.route_code;
        -- Count the finding only once for new changes.
        if not exists (select from tidemark.finding f where f.kind = 'capture_unwritten' and f.subject = r.route_code
                       and f.closed_at is null and f.last_seen_at >= r.last) then
            perform tidemark.finding_open('capture_unwritten', r.route_code, 'high',
                format('%s of the last hour became no event: %s',
                       case r.changes when 1 then '1 change' else r.changes || ' changes' end, r.reason));
        end if;
    end loop;
    perform tidemark.finding_close(f.kind, f.subject)
    from tidemark.finding f
    where f.kind = 'capture_unwritten' and f.closed_at is null and f.subject <> all (unwritten);
end
$$;
comment on function tidemark.capture_findings() is
    'The part of tidemark.maintain for captures: tidemark.capture_gaps_note. Opens the finding capture_unwritten for '
    'each inbound route that lost changes in the last hour: its type is not registered, or an event could not be '
    'written and the route is not fail_closed. The users'' transactions do not do this, since they would wait for each '
    'other.';
