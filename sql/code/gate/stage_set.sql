-- public
create or replace function tidemark.stage_set(stage text, reason text)
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if coalesce(stage_set.stage, '') not in ('dry_run', 'live') then
        raise exception using errcode = 'TM005',
            message = format('stage "%s" is neither dry_run nor live', coalesce(stage_set.stage, 'null')),
            hint = 'select tidemark.stage_set(''live'', ''why'');';
    end if;
    if coalesce(btrim(stage_set.reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'changing the stage needs a reason',
            hint = 'select tidemark.stage_set(''live'', ''why'');';
    end if;

    perform set_config('tidemark.reason', stage_set.reason, true);
    if exists (select from tidemark.stage s where s.stage = 'live') and not tidemark.armed() then
        -- This is a copy. The silent daemons are those of the original, and are not expected here.
        with forgotten as (
            delete from tidemark.heartbeat h
            where h.executor_id like 'daemon/%' and exists (
                select from tidemark.heartbeat_health s where s.executor_id = h.executor_id and s.state = 'silent')
            returning h.executor_id)
        update tidemark.finding f set closed_at = clock_timestamp()
        from forgotten g where f.kind = 'heartbeat_silent' and f.subject = g.executor_id and f.closed_at is null;
    end if;
    update tidemark.stage
    set stage = stage_set.stage, changed_at = clock_timestamp(), changed_by = tidemark.login(),
        reason = stage_set.reason, (system_identifier, database) = (
            select c.system_identifier, current_database() from pg_control_system() c
            where stage_set.stage = 'live');
    if stage_set.stage = 'dry_run' then
        -- Nothing leaves this copy any more.
        perform tidemark.finding_close(f.kind, f.subject)
        from tidemark.finding f where f.kind = 'two_copies' and f.closed_at is null;
    end if;
    return stage_set.stage;
end
$$;
comment on function tidemark.stage_set(text, text) is
    'Sets the stage: live (binds this cluster and database, so that routes may deliver) or dry_run. Records the role, '
    'the time and the reason. On a copy of a live installation it forgets the silent daemons of the original; dry_run '
    'closes the findings two_copies. Raises TM005 for another stage or an empty reason.';
grant execute on function tidemark.stage_set(text, text) to tidemark_admin;
