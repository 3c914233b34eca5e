create or replace function tidemark.heartbeat_daemon(
    name text, status text default 'running', payload jsonb default '{}')
returns timestamptz
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    login constant name := tidemark.login();
    at timestamptz;
begin
    if name is null or name !~ '^[^[:space:][:cntrl:]]{1,190}$' then
        raise exception using errcode = 'TM005',
            message = format('a daemon cannot be named %s: 1 to 190 characters without white space',
                             coalesce(quote_literal(left(name, 300)), 'null')),
            hint = 'Set "name" in its configuration.';
    end if;
    if status is null or length(status) not between 1 and 200 then
        raise exception using errcode = 'TM005',
            message = format('daemon %s: status must have 1 to 200 characters', name);
    end if;
    perform tidemark.heartbeat_payload_check('daemon/' || name, payload);
    -- Keep the values that heartbeat_register set for it.
    insert into tidemark.heartbeat as h (executor_id, kind, expected_cadence_seconds, stale_threshold_seconds,
                                         watched_since, last_beat_at, ticks_total, last_status, payload)
    values ('daemon/' || heartbeat_daemon.name, 'PG_worker', 10, 30, clock_timestamp(), clock_timestamp(), 1,
            heartbeat_daemon.status, heartbeat_daemon.payload || coalesce(
                (select jsonb_build_object('superuser', r.rolname) from pg_roles r
                 where r.rolname = login and r.rolsuper), '{}'))
    on conflict (executor_id) do update
    set last_beat_at = excluded.last_beat_at, ticks_total = h.ticks_total + 1, last_status = excluded.last_status,
        payload = excluded.payload
    returning h.last_beat_at into at;
    return at;
end
$$;
comment on function tidemark.heartbeat_daemon(text, text, jsonb) is
    'A beat of the daemon daemon/<name>: it beats every 10 seconds, and is silent after 30. The first beat registers '
    'the daemon; no other executor registers itself, and a daemon has no right to register others. Its silence after '
    'the status stopped raises no alarm. Returns the time of the beat. Raises TM002, TM003, TM005.';
grant execute on function tidemark.heartbeat_daemon(text, text, jsonb) to tidemark_executor;
