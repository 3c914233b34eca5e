create or replace function tidemark.lag_findings()
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    warn constant numeric := extract(epoch from tidemark.interval_setting('lag.warn', '1 minute'));
    bad constant numeric := extract(epoch from tidemark.interval_setting('lag.bad', '15 minutes'));
    l record;
begin
    for l in select c.*, c.worker || '/' || c.source || '/' || c.shard as name from tidemark.cursor_lag c
             order by 1, 2, 3 loop
        -- A worker that was switched off on purpose falls behind on purpose.
        if l.gate is null and l.seconds > warn and l.last_run_at is not null then
            perform tidemark.finding_open('cursor_lag', l.name,
                case when l.seconds > bad then 'high' else 'warning' end::tidemark.severity,
                format('%s behind%s%s', make_interval(secs => l.seconds), ', ' || l.events || ' events',
                       ', blocked by ' || l.blocked_by));
        else
            perform tidemark.finding_close('cursor_lag', l.name);
        end if;
    end loop;
end
$$;
comment on function tidemark.lag_findings() is
    'Opens the finding cursor_lag for each cursor that is behind for longer than the setting lag.warn (severity high: '
    'lag.bad), and closes it when the cursor is no longer that far behind.';
