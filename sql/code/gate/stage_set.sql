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
    update tidemark.stage
    set stage = stage_set.stage, changed_at = clock_timestamp(), changed_by = tidemark.login(),
        reason = stage_set.reason, (system_identifier, database) = (
            select c.system_identifier, current_database() from pg_control_system() c
            where stage_set.stage = 'live');
    return stage_set.stage;
end
$$;
comment on function tidemark.stage_set(text, text) is
    'Sets the stage: live (binds this cluster and database, so that routes may deliver) or dry_run. Records the role, '
    'the time and the reason. Raises TM005 for another stage or an empty reason.';
grant execute on function tidemark.stage_set(text, text) to tidemark_admin;
