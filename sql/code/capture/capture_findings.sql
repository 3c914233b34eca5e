create or replace function tidemark.capture_findings()
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    r record;
    unwritten text[] := '{}';
    gap tidemark.capture_gap;
begin
    -- What tidemark.capture_recount would find with its next round. It has the same lock, so that no change is counted
    -- twice; its comparison begins anew.
    perform from tidemark.capture_round for update skip locked;
    if found then
        for r in select m.* from tidemark.capture_missed() m loop
            gap.relation := r.relation;
            gap.name := r.name;
            gap.since := r.since;
            gap.snapshot := r.snapshot;
            gap.counted := r.inserts;
            gap.others := r.deletes;
            gap.detail := format('by the server''s counts, at least %s inserts and %s deletes since %s have no event',
                                 r.inserts, r.deletes, date_trunc('second', r.since));
            perform tidemark.capture_gap_open(gap);
            delete from tidemark.capture_count c where c.name = r.name;
        end loop;
    end if;

    -- Find triggers that do not fire now, and may fire again before the next reconcile. This reads a few rows of the
    -- catalogs.
    for r in
        select d.relation, d.name, d.operations from tidemark.capture_deaf d
        where not exists (select from tidemark.capture_gap g where g.name = d.name and g.resolved_at is null)
    loop
        gap.relation := r.relation;
        gap.name := r.name;
        -- When the table was compared last: its rows since then are emitted, unless they have events.
        select k.since, k.snapshot into gap.since, gap.snapshot
        from (select c.at as since, c.snapshot, true as whole from tidemark.capture_checkpoint c where c.name = r.name
              union all
              select (c.base).since, (c.base).snapshot, true from tidemark.capture_count c
              where c.name = r.name and c.base is not null
              union all
              select (c.noted).since, (c.noted).snapshot, false from tidemark.capture_count c
              where c.name = r.name
              union all
              select clock_timestamp(), pg_current_snapshot(), null) k
        order by k.whole desc nulls last, k.since desc limit 1;
        gap.counted := 0;
        gap.others := 0;
        gap.detail := format('its trigger for %s is missing, altered or disabled', r.operations);
        perform tidemark.capture_gap_open(gap);
    end loop;

    for r in
        select i.route_code, sum(c.rows) as changes, max(c.at) as last,
               (array_agg(c.reason order by c.at desc))[1] as reason
        from tidemark.captured c join tidemark.inbound_route i on i.id = c.route_id
        where c.at > clock_timestamp() - interval '1 hour'
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
    'The part of tidemark.maintain for captures. Opens the finding capture_unwritten for each inbound route that lost '
    'changes in the last hour: its type is not registered, or an event could not be written and the route is not '
    'fail_closed. The users'' transactions do not do this, since they would wait for each other. Opens the finding '
    'capture_gap, with its gap, for each table with an enabled route whose trigger does not fire, and for those of '
    'tidemark.capture_missed.';
