create or replace function tidemark.capture_backfill_write(
    id bigint, was text[], rows_ jsonb, upto text[], left_out bigint)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    b tidemark.capture_backfill;
    route tidemark.inbound_route;
    emitted bigint := 0;
begin
    -- Of two concurrent steps the second finds that the first has moved on.
    select f.* into b from tidemark.capture_backfill f
    where f.id = capture_backfill_write.id and f.finished_at is null and f.cancelled_at is null for update;
    if not found or b.upto is distinct from capture_backfill_write.was then
        raise exception using errcode = 'TM011', message = format('backfill %s is run by another session', id),
            hint = 'One is enough. Call it again.';
    end if;
    perform tidemark.capture_backfill_own(b.relation, b.name);
    route := tidemark.capture_backfill_route(b.name);
    if jsonb_array_length(rows_) > 0 then
        emitted := cardinality(tidemark.emit_all((
            select jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                'domain', b.domain, 'type', b.type, 'stream', route.stream, 'subject_table', b.name, 'key', r ->> 'ref',
                'subject_ref', r ->> 'ref'))
                || jsonb_build_object('payload', jsonb_build_object(
                    'schema', route.source_schema, 'table', route.source_table, 'operation', 'read') || (r - 'ref'))
                order by e.ord)
            from jsonb_array_elements(rows_) with ordinality e (r, ord)), true, true, inbound_id => 0));
    end if;
    update tidemark.capture_backfill f
    set upto = coalesce(capture_backfill_write.upto, f.upto), rows = f.rows + emitted,
        left_out = f.left_out + capture_backfill_write.left_out,
        finished_at = case when capture_backfill_write.upto is null then clock_timestamp() end
    where f.id = b.id;
    if capture_backfill_write.upto is null then
        delete from tidemark.capture_backfill_key k where k.backfill_id = b.id;
    end if;
    return emitted;
end
$$;
comment on function tidemark.capture_backfill_write(bigint, text[], jsonb, text[], bigint) is
    'Part of tidemark.capture_backfill_step: emits rows ({"ref", "primary_key", "columns"}), and moves on to the row '
    'with the key upto; null ends the backfill. was is where the caller found it.';
grant execute on function tidemark.capture_backfill_write(bigint, text[], jsonb, text[], bigint) to tidemark_admin;
