-- public
create or replace function tidemark.emit_arrays(
    domains text[],
    types text[],
    payloads jsonb[] default null,
    keys text[] default null,
    streams text[] default null,
    lanes text[] default null,
    severities text[] default null,
    subject_tables text[] default null,
    subject_refs text[] default null,
    idempotency_keys text[] default null,
    traces text[] default null,
    actors text[] default null,
    occurred_at timestamptz[] default null)
returns table ("position" integer, event_id uuid)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select e.ord::integer, e.id
    from unnest(tidemark.emit_all('[]', false, false, domains, types, payloads, keys, streams, lanes, severities,
                                  subject_tables, subject_refs, idempotency_keys, traces, actors, occurred_at))
         with ordinality e (id, ord);
end
$$;
comment on function tidemark.emit_arrays(
    text[], text[], jsonb[], text[], text[], text[], text[], text[], text[], text[], text[],
    text[], timestamptz[]) is
    'Like tidemark.emit_many, with an array for each field in place of JSON: an event is what the arrays hold at its '
    'position. It costs less where the driver has arrays. A null array, or a null in it, is a field that is left out. '
    'Raises TM002 as well for arrays that differ in length.';
grant execute on function tidemark.emit_arrays(
    text[], text[], jsonb[], text[], text[], text[], text[], text[], text[], text[], text[],
    text[], timestamptz[]) to tidemark_emitter;
