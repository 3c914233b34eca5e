create or replace function tidemark.row_letters(
    worker text, gone tidemark.pending_row[], codes text[], messages text[])
returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    n bigint;
begin
    insert into tidemark.dead_letter as l (idempotency_key, worker_id, source, shard, item_id, item_ts, event_snapshot,
                                           error_code, error_detail, attempts, first_failed_at, last_failed_at)
    select format('tm:%s:%s:%s', row_letters.worker, g.source, g.item_id), g.worker_id, g.source, g.shard, g.item_id,
           g.item_ts, g.snapshot, codes[a.i], messages[a.i], g.error_count, g.created_at, clock_timestamp()
    from generate_subscripts(gone, 1) a (i) cross join lateral unnest(array[gone[a.i]]) g
    -- A replay failed, or a row was read again after a rewind: the dead letter is open again.
    on conflict (idempotency_key) do update
    set error_code = excluded.error_code, error_detail = excluded.error_detail,
        last_failed_at = excluded.last_failed_at, attempts = l.attempts + 1, event_snapshot = excluded.event_snapshot,
        resolved_at = null, resolution = null, resolved_by = null, resolution_reason = null,
        logged = false;
    get diagnostics n = row_count;
    return n;
end
$$;
comment on function tidemark.row_letters(text, tidemark.pending_row[], text[], text[]) is
    'Makes dead letters of rows that were pending, or opens theirs again, each with its error code and message. '
    'Returns how many.';
