-- public
create or replace function tidemark.emit_many(events jsonb)
returns table ("position" integer, event_id uuid)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select e.ord::integer, e.id
    from unnest(tidemark.emit_all(events, false, false)) with ordinality e (id, ord);
end
$$;
comment on function tidemark.emit_many(jsonb) is
    'Emits an array of events, [{"domain": …, "type": …, "payload": {…}, …}], in the caller''s transaction; the fields '
    'are the parameters of tidemark.emit. Returns the result of tidemark.emit for each position, from 1. One refused '
    'event (TM002, TM003, TM005, TM014, TM015) fails the call, and the message names its position.';
grant execute on function tidemark.emit_many(jsonb) to tidemark_emitter;
