-- A result and its effect are one transaction: where the log refuses results, no command of the service can end, and
-- its partitions of Kafka stay where they are.
create or replace function tidemark.command_type_check()
returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    problem text;
begin
    problem := case
        when new.metadata_only then 'the domain commands cannot be metadata-only'
        when not new.restricted then 'the domain commands cannot be open: results could be forged'
        when not new.enabled then 'it cannot be disabled'
        when new.schema is not null then 'it has no schema' end;
    if problem is not null and exists (
        select from tidemark.service s where new.type in ('result.' || s.service, 'dead_letter.' || s.service)) then
        raise exception using errcode = 'TM005',
            message = format('commands/%s is how commands of a service end: %s', new.type, problem),
            hint = 'To stop a service, close its gate: tidemark gate close commands.SERVICE.enabled. To keep results '
                'from leaving, disable their route.';
    end if;
    return new;
end
$$;
comment on function tidemark.command_type_check() is
    'Trigger: raises TM005 where the type of a service''s results or dead letters would refuse them.';

-- By its name it runs after event_type_spread, which sets what the type has of its domain.
create or replace trigger event_type_takes_results
before insert or update on tidemark.event_type
for each row when (new.domain = 'commands') execute function tidemark.command_type_check();
comment on trigger event_type_takes_results on tidemark.event_type is
    'Results and dead letters of commands are never refused.';
