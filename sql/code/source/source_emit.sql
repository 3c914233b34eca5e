create or replace function tidemark.source_emit(
    worker_id integer, source text, shard integer, epoch bigint, rows_ jsonb)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    w constant tidemark.worker := (select w from tidemark.worker w where w.id = source_emit.worker_id);
    s constant tidemark.source := (select s from tidemark.source s where s.source = source_emit.source);
    shown constant text[] := s.key_columns || w.payload_columns;
begin
    if rows_ is null then
        return null;
    end if;
    -- Require the lease: an executor may do a worker's work, but may not emit events otherwise.
    perform tidemark.lease_check(w.worker, source_emit.epoch, source_emit.source, source_emit.shard);
    -- Each row has its own key, so that a rewound cursor emits no row twice.
    return jsonb_build_object('emitted', cardinality(tidemark.emit_all((
        select jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
            'domain', split_part(w.handler_ref, '/', 1), 'type', substr(w.handler_ref, strpos(w.handler_ref, '/') + 1),
            'subject_table', format('%I.%I', s.schema_name, s.table_name), 'subject_ref', r ->> 'id',
            'key', coalesce((select string_agg(r -> 'row' ->> k, ',') from unnest(s.key_columns) k), r ->> 'id'),
            'idempotency_key', format('tidemark:source/%s/%s/%s', w.worker, s.source,
                case when octet_length(r ->> 'id') <= 512 then r ->> 'id'
                     else 'sha256/' || encode(sha256(convert_to(r ->> 'id', 'UTF8')), 'hex') end),
            'occurred_at', r ->> 'ts'))
            || jsonb_build_object('payload', jsonb_build_object('id', r -> 'row' -> s.id_column)
               || coalesce((select jsonb_object_agg(k, r -> 'row' -> k) from unnest(shown) k), '{}')) order by e.ord)
        from jsonb_array_elements(rows_) with ordinality e (r, ord)), true, true)));
end
$$;
comment on function tidemark.source_emit(integer, text, integer, bigint, jsonb) is
    'Emits an event for each row ({"id", "ts", "row"}). The payload has the id, the source''s key columns and the '
    'worker''s payload_columns; the event''s key is that of the row. Needs the epoch of the lease. Raises TM011 where '
    'that epoch is over, TM001 for a type that is not registered, and the errors of tidemark.emit_many. The '
    'idempotency key of an event is "tidemark:source/WORKER/SOURCE/ID", which no emitter can write.';
grant execute on function tidemark.source_emit(integer, text, integer, bigint, jsonb) to tidemark_executor;
