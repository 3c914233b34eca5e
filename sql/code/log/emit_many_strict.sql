-- public
create or replace function tidemark.emit_many_strict(events jsonb)
returns table ("position" integer, event_id uuid)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select e.ord::integer, e.id
    from unnest(tidemark.emit_all(events, true, false)) with ordinality e (id, ord);
end
$$;
comment on function tidemark.emit_many_strict(jsonb) is
    'Like tidemark.emit_many, but raises TM001, with the position, where a type is not registered or not enabled. '
    'Nothing is stored then.';
grant execute on function tidemark.emit_many_strict(jsonb) to tidemark_emitter;
