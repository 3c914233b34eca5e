create or replace function tidemark.capture_gap_write(id bigint, rows_ jsonb, complete boolean, reason text)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    gap tidemark.capture_gap;
    route tidemark.inbound_route;
    emitted bigint := 0;
begin
    -- Of two concurrent calls the second waits, and then finds the rows emitted.
    select g.* into gap from tidemark.capture_gap g where g.id = capture_gap_write.id and g.resolved_at is null
    for update;
    if not found then
        return 0;
    end if;
    route := tidemark.capture_gap_route(gap.name);
    if rows_ is not null then
        emitted := cardinality(tidemark.emit_all((
            select jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                'domain', route.domain, 'type', route.type, 'stream', route.stream, 'subject_table', gap.name,
                'key', r ->> 'ref', 'subject_ref', r ->> 'ref',
                'idempotency_key', format('tidemark:gap/%s/%s', gap.id,
                                          encode(sha256(convert_to(r ->> 'primary_key', 'UTF8')), 'hex'))))
                || jsonb_build_object('payload', jsonb_build_object(
                    'schema', route.source_schema, 'table', route.source_table, 'operation', route.sql_event,
                    'reconciled', true)
                    || (r - 'ref')) order by e.ord)
            from jsonb_array_elements(rows_) with ordinality e (r, ord)), true, true, inbound_id => 0));
        update tidemark.capture_gap g set emitted = g.emitted + jsonb_array_length(rows_) where g.id = gap.id;
    end if;
    if complete then
        -- Inserts that were counted, and whose rows are gone: no event will tell them.
        update tidemark.capture_gap g
        set others = g.others + greatest(g.counted - g.emitted, 0), counted = least(g.counted, g.emitted)
        where g.id = gap.id returning g.* into gap;
    end if;
    if complete and gap.others = 0 then
        perform tidemark.capture_gap_resolve(gap, 'emitted', reason);
    end if;
    return emitted;
end
$$;
comment on function tidemark.capture_gap_write(bigint, jsonb, boolean, text) is
    'Part of tidemark.capture_gap_emit: emits rows ({"ref", "primary_key", "columns"}) of a gap''s table, each once '
    'for the gap. complete: no more rows are left, so the gap is over unless changes were counted that no row shows.';
grant execute on function tidemark.capture_gap_write(bigint, jsonb, boolean, text) to tidemark_admin;
