create or replace function tidemark.dead_letter_stage(id bigint)
returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
    insert into tidemark.pending_row (worker_id, source, shard, item_id, item_ts, snapshot, error_count, last_error, next_attempt_at, dead_letter_id)
    select l.worker_id, l.source, l.shard, l.item_id, l.item_ts, l.event_snapshot, l.attempts, concat_ws(': ', l.error_code, l.error_detail),
           clock_timestamp(), l.id
    from tidemark.dead_letter l where l.id = dead_letter_stage.id and l.source <> 'outbox' and l.resolved_at is null
    -- The row was met again after a rewind, and waits already.
    on conflict (worker_id, source, shard, item_id) do update
    set dead_letter_id = excluded.dead_letter_id, next_attempt_at = excluded.next_attempt_at
$$;
comment on function tidemark.dead_letter_stage(bigint) is 'Puts the row of an open dead letter among those that the next pass of its worker tries again.';
revoke all on function tidemark.dead_letter_stage(bigint) from public;
grant execute on function tidemark.dead_letter_stage(bigint) to tidemark_executor;
