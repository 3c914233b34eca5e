-- public
create or replace function tidemark.emit_arrays_strict(
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
    from unnest(tidemark.emit_all('[]', true, false, domains, types, payloads, keys, streams, lanes, severities,
                                  subject_tables, subject_refs, idempotency_keys, traces, actors, occurred_at))
         with ordinality e (id, ord);
end
$$;
comment on function tidemark.emit_arrays_strict(
    text[], text[], jsonb[], text[], text[], text[], text[], text[], text[], text[], text[],
    text[], timestamptz[]) is
    'Like tidemark.emit_arrays, but raises TM001, with the position, where a type is not registered or not enabled. '
    'Nothing is stored then.';
grant execute on function tidemark.emit_arrays_strict(
    text[], text[], jsonb[], text[], text[], text[], text[], text[], text[], text[], text[],
    text[], timestamptz[]) to tidemark_emitter;
