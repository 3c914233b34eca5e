create or replace function tidemark.cause_daemons()
returns setof tidemark.trouble
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    bound constant tidemark.stage := (select s from tidemark.stage s);
    alive text;
    d record;
begin
    select string_agg(h.executor_id, ', ' order by h.executor_id) into alive
    from tidemark.heartbeat_health h where h.executor_id like 'daemon/%' and h.state = 'alive';
    if bound.stage = 'live' and not tidemark.armed() then
        return next row(
            'disarmed', current_database(), case when alive is null then 'warn' else 'bad' end, null,
            format('this is a copy, and delivers nothing: database %s of cluster %s was made live by %s (%s), and this '
                   'is database %s of cluster %s%s',
                   bound.database, bound.system_identifier, bound.changed_by, bound.reason, current_database(),
                   (select c.system_identifier from pg_control_system() c), '; it is run by ' || alive),
            null,
            -- What it says of daemons and lags is what the original was like.
            '{heartbeat *,cursor *,backlog *,pending *,finding heartbeat_silent *,finding cursor_silent_gap *,'
            'finding cursor_lag *}',
            array['select tidemark.stage_set(''dry_run'', ''a copy, which delivers nothing'');'],
            array['tidemark stage dry_run --reason ''a copy, which delivers nothing'''])::tidemark.trouble;
        return;
    end if;
    for d in
        select h.*, substr(h.executor_id, 8) as name,
               array(select o.executor_id from tidemark.heartbeat_health o
                     where o.worker is not null and o.state = 'silent'
                       and starts_with(o.lease_owner, substr(h.executor_id, 8) || '/')) as cursors
        from tidemark.heartbeat_health h where h.executor_id like 'daemon/%' and h.state = 'silent'
    loop
        return next row(
            'daemon_dead', d.executor_id, case when alive is null then 'bad' else 'warn' end, d.last_beat_at,
            format('daemon %s%s%s has not beaten for %s; %s', d.name, ' on host ' || (d.payload ->> 'host'),
                   ', process ' || (d.payload ->> 'pid'), make_interval(secs => d.age_seconds),
                   coalesce('in its place: ' || alive, 'no other daemon runs')),
            case when alive is null then
                coalesce((select sum(tidemark.cursor_waiting(c)) from tidemark.worker_cursor c
                          where c.source = 'outbox' and tidemark.closed_gate(c.worker) is null
                            and tidemark.cursor_is_last(c)), 0)
                + (select count(*) from (select from tidemark.pending p where p.dead_letter_id is null limit 10000) p)
            end,
            array['heartbeat ' || d.executor_id, 'finding heartbeat_silent ' || d.executor_id]
                || array(select k.kind || ' ' || c.name from unnest(d.cursors) c (name)
                         cross join unnest('{heartbeat,cursor,backlog,finding cursor_silent_gap,'
                                           'finding cursor_lag}'::text[]) k (kind))
                || case when alive is null then '{pending *}'::text[] end,
            '{}',
            array['tidemark run' || coalesce(' --config ' || tidemark.shell_word(d.payload ->> 'config'), '')]
        )::tidemark.trouble;
    end loop;
end
$$;
comment on function tidemark.cause_daemons() is
    'The part of tidemark.cause about daemons: daemon_dead (bad: no other runs), and disarmed for a copy of a live '
    'installation (bad: a daemon runs on it), whose restored heartbeats and lags are its symptoms.';
grant execute on function tidemark.cause_daemons() to tidemark_reader, tidemark_executor;
