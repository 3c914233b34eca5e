create or replace function tidemark.heartbeat_daemon(
    name text, status text default 'running', payload jsonb default '{}')
returns timestamptz
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    executor constant text := 'daemon/' || heartbeat_daemon.name;
    login constant name := tidemark.login();
begin
    if name is null or name !~ '^[^[:space:][:cntrl:]]{1,190}$' then
        raise exception using errcode = 'TM005',
            message = format('a daemon cannot be named %s: 1 to 190 characters without white space',
                             coalesce(quote_literal(left(name, 300)), 'null')),
            hint = 'Set "name" in its configuration.';
    end if;
    if not exists (select from tidemark.heartbeat h where h.executor_id = executor) then
        insert into tidemark.heartbeat (executor_id, kind, expected_cadence_seconds, stale_threshold_seconds,
                                        watched_since)
        values (executor, 'PG_worker', 10, 30, clock_timestamp())
        on conflict do nothing;
    end if;
    return tidemark.heartbeat_write(
        executor, heartbeat_daemon.status, heartbeat_daemon.payload
        || tidemark.clock_compare(executor, (select h.payload from tidemark.heartbeat h where h.executor_id = executor),
                                  heartbeat_daemon.payload) || coalesce(
            (select jsonb_build_object('superuser', r.rolname) from pg_roles r
             where r.rolname = login and r.rolsuper), '{}'));
end
$$;
comment on function tidemark.heartbeat_daemon(text, text, jsonb) is
    'A beat of the daemon daemon/<name>: it beats every 10 seconds, and is silent after 30. The first beat registers '
    'the daemon; its uptime (seconds, in the payload) shows steps of the server''s clock (tidemark.clock_step); no '
    'other executor registers itself, and a daemon has no right to register others. Its silence after '
    'the status stopped raises no alarm. Returns the time of the beat. Raises TM002, TM003, TM005.';
grant execute on function tidemark.heartbeat_daemon(text, text, jsonb) to tidemark_executor;
