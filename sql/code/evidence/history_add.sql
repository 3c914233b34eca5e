create or replace function tidemark.history_add(ranges tidemark.evidence[])
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
begin
    insert into tidemark.route_minute as m (route_id, at, sent, retried, failed, recorded)
    select e.route_id, date_bin('1 minute', clock_timestamp(), 'epoch'),
           coalesce(sum(e.events) filter (where e.outcome = 'sent'), 0),
           coalesce(sum(e.events) filter (where e.outcome = 'pending'), 0),
           coalesce(sum(e.events) filter (where e.outcome = 'failed'), 0),
           coalesce(sum(e.events) filter (where e.outcome in ('dry_run', 'disabled', 'skipped')), 0)
    from unnest(history_add.ranges) e
    -- An event that is pending and has no error was not tried. Route 0: no route claimed it.
    where e.route_id > 0 and (e.outcome <> 'pending' or e.detail is not null)
    group by e.route_id
    order by e.route_id
    on conflict (route_id, at) do update
    set sent = m.sent + excluded.sent, retried = m.retried + excluded.retried, failed = m.failed + excluded.failed,
        recorded = m.recorded + excluded.recorded;
end
$$;
comment on function tidemark.history_add(tidemark.evidence[]) is
    'Part of tidemark.settle: adds what a batch came to to the minute of each of its routes.';
