create or replace function tidemark.capture_findings()
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    r record;
    unwritten text[] := '{}';
begin
    for r in
        select i.route_code, sum(c.rows) as changes, max(c.at) as last, (array_agg(c.reason order by c.at desc))[1] as reason
        from tidemark.captured c join tidemark.inbound_route i on i.id = c.route_id
        where c.at > clock_timestamp() - interval '1 hour'
          and (c.outcome = 'failed' or c.outcome = 'unregistered' and not exists (
              select from tidemark.event_type t where t.domain = i.domain and t.type = i.type and t.enabled))
        group by 1 order by 1
    loop
        unwritten := unwritten || r.route_code;
        -- Counted once for what is new.
        if not exists (select from tidemark.finding f where f.kind = 'capture_unwritten' and f.subject = r.route_code
                       and f.closed_at is null and f.last_seen_at >= r.last) then
            perform tidemark.finding_open('capture_unwritten', r.route_code, 'high',
                format('%s of the last hour became no event: %s', case r.changes when 1 then '1 change' else r.changes || ' changes' end, r.reason));
        end if;
    end loop;
    perform tidemark.finding_close(f.kind, f.subject)
    from tidemark.finding f
    where f.kind = 'capture_unwritten' and f.closed_at is null and f.subject <> all (unwritten);
end
$$;
comment on function tidemark.capture_findings() is 'tidemark.maintain''s part for captures: the finding capture_unwritten for each inbound route of which changes became no event in the last hour (its type is not registered, or the event could not be written and the route does not fail closed). Not in the users'' transactions, which must not wait for each other.';
revoke all on function tidemark.capture_findings() from public;
