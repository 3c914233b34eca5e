-- A function of its own, as tidemark.command_letters_within is: it pins the planner's settings.
create or replace function tidemark.command_letters_alone(
    service text, tenant text, key text, before timestamptz, most integer)
returns setof bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    commands constant integer := (select w.id from tidemark.worker w where w.worker = 'commands');
begin
    return query
    select l.id from tidemark.dead_letter l
    where l.worker_id = commands and l.source = 'commands' and l.error_detail is distinct from 'erased'
      and l.event_snapshot ->> 'service' = command_letters_alone.service
      and (command_letters_alone.tenant is null or l.event_snapshot ->> 'tenant' = command_letters_alone.tenant)
      and (command_letters_alone.key is null or l.event_snapshot ->> 'idempotency_key' = command_letters_alone.key)
      and (command_letters_alone.before is null or l.first_failed_at < command_letters_alone.before)
      and not exists (select from tidemark.command_record r where r.id = l.item_id::bigint)
      and not exists (select from tidemark.command_parked p
                      where p.service = command_letters_alone.service
                        and p.idempotency_key = l.event_snapshot ->> 'idempotency_key')
    order by l.id limit command_letters_alone.most;
end
$$;
comment on function tidemark.command_letters_alone(text, text, text, timestamptz, integer) is
    'Part of tidemark.commands_erase: dead letters of commands that have outlived their raw record '
    '(command_record.retention), by service, tenant, idempotency key and the time before which they failed first.';
