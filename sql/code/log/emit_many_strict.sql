-- public
create or replace function tidemark.emit_many_strict(events jsonb)
returns table ("position" integer, event_id uuid)
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
    select e.position, e.event_id from tidemark.emit_all(events, true, false) e
$$;
comment on function tidemark.emit_many_strict(jsonb) is
    'Like tidemark.emit_many, but raises TM001, with the position, where a type is not registered or not enabled. '
    'Nothing is stored then.';
grant execute on function tidemark.emit_many_strict(jsonb) to tidemark_emitter;
