-- public
create or replace function tidemark.stale_check()
returns table (
    executor_id text,
    state text,
    severity tidemark.severity,
    age_seconds bigint,
    expected_cadence_seconds integer,
    stale_threshold_seconds integer,
    last_status text,
    event_id uuid)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    overdue text;
    h tidemark.heartbeat_health;
    f record;
    told boolean;
    id uuid;
begin
    perform tidemark.session_check('stale_check', 'it must see what another check has reported meanwhile.');
    -- An executor's silence is reported only if it has a row in tidemark.silence.
    insert into tidemark.silence (executor_id)
    select h.executor_id from tidemark.heartbeat h
    where not exists (select from tidemark.silence s where s.executor_id = h.executor_id)
    on conflict do nothing;

    for overdue in
        select v.executor_id from tidemark.heartbeat_health v
        where v.state = 'silent' or v.worker is not null and v.state = 'quiet' and v.last_beat_at is not null
                                    and v.age_seconds > v.stale_threshold_seconds / 2
        order by 1
    loop
        -- Of two concurrent checks one reports, and the other does not wait. A session that reads the result slowly, in
        -- an open transaction, delays only the report on that executor, and never its worker. An advisory lock would
        -- not do: any login could hold it. The row exists since the heartbeat does (trigger heartbeat_silence).
        perform from tidemark.silence s where s.executor_id = overdue for update skip locked;
        continue when not found;
        -- A new statement sees the commit of a check that had the lock just before.
        select v.* into h from tidemark.heartbeat_health v where v.executor_id = overdue;
        if h.state = 'quiet' then
            -- After its gate opens, the executor has at least half its threshold to come back.
            update tidemark.silence s set excused_at = clock_timestamp() where s.executor_id = overdue;
        end if;
        continue when h.state is distinct from 'silent';

        update tidemark.silence s set told_at = clock_timestamp()
        where s.executor_id = overdue
          and coalesce(s.told_at <= clock_timestamp() - make_interval(secs => 2.0 * h.stale_threshold_seconds)
                       or s.told_at > clock_timestamp(), true);
        told := found;
        id := null;
        if told then
            id := tidemark.system_event('queue_worker_silent', h.severity, 'tidemark.heartbeat', overdue,
                jsonb_build_object('executor_id', overdue, 'kind', h.kind, 'age_seconds', h.age_seconds,
                    'expected_cadence_seconds', h.expected_cadence_seconds,
                    'stale_threshold_seconds', h.stale_threshold_seconds,
                    'gap_ratio', round(h.age_seconds::numeric / h.expected_cadence_seconds, 1),
                    'last_status', h.last_status), 'alert');
        end if;
        select o.severity into f from tidemark.finding o
        where o.kind = case when h.worker is null then 'heartbeat_silent' else 'cursor_silent_gap' end
          and o.subject = overdue and o.closed_at is null;
        if told or f.severity is distinct from h.severity then
            perform tidemark.finding_open(case when h.worker is null then 'heartbeat_silent'
                                               else 'cursor_silent_gap' end, overdue, h.severity,
                format('silent for %s, although a beat is expected every %s s; its last status was "%s"%s%s',
                       make_interval(secs => h.age_seconds), h.expected_cadence_seconds, h.last_status,
                       ', as ' || h.lease_owner, ', at job ' || h.current_job_id));
        end if;
        return query select overdue, h.state, h.severity, h.age_seconds, h.expected_cadence_seconds,
                            h.stale_threshold_seconds, h.last_status, id;
    end loop;

    for f in
        select o.id, o.kind, o.subject, o.severity from tidemark.finding o
        where o.closed_at is null and o.kind in ('cursor_silent_gap', 'heartbeat_silent')
          and not exists (select from tidemark.heartbeat_health v
                          where v.executor_id = o.subject and v.state = 'silent')
        order by o.id
        for update of o skip locked
    loop
        perform tidemark.finding_close(f.kind, f.subject);
        select v.* into h from tidemark.heartbeat_health v where v.executor_id = f.subject;
        return query select f.subject, case when h.executor_id is null then 'gone' when h.state = 'quiet' then 'quiet'
                                            else 'returned' end,
                            f.severity, h.age_seconds, h.expected_cadence_seconds, h.stale_threshold_seconds,
                            h.last_status, null::uuid;
    end loop;
end
$$;
comment on function tidemark.stale_check() is
    'Finds executors that have been silent for longer than their threshold, by the database''s clock alone. Each gets '
    'one event system/queue_worker_silent (stream alert), repeated after twice the threshold at the earliest, and the '
    'finding cursor_silent_gap (a worker''s cursor) or heartbeat_silent, which counts the events. Closes the findings '
    'of executors that are back, excused or gone. Returns a row for each silent executor (event_id: the event that '
    'this call emitted) and for each whose finding it closed (state returned, quiet or gone). Any number of sessions '
    'may call it at once, at any time; every daemon does, every 10 seconds. Raises TM006 (isolation level), TM007 '
    '(standby). Source: S4 fn_queue_stale_check.';
grant execute on function tidemark.stale_check() to tidemark_executor;
