create or replace function tidemark.dead_letter_requeue(id bigint, why text)
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    letter constant tidemark.dead_letter := tidemark.dead_letter_claim(dead_letter_requeue.id);
begin
    insert into tidemark.pending_row as p (worker_id, source, shard, item_id, item_ts, snapshot, error_count,
                                           last_error, next_attempt_at, dead_letter_id)
    values (letter.worker_id, letter.source, letter.shard, letter.item_id, letter.item_ts, letter.event_snapshot,
            letter.attempts, concat_ws(': ', letter.error_code, letter.error_detail), clock_timestamp(), letter.id)
    on conflict (worker_id, source, shard, item_id) do update
    set next_attempt_at = excluded.next_attempt_at, dead_letter_id = excluded.dead_letter_id;
    if btrim(why) <> '' then
        insert into tidemark.audit (action, object, reason, after)
        values ('dead_letter_replay', 'dead_letter ' || letter.id, why,
                jsonb_build_object('attempt_no', letter.attempts + 1, 'outcome', 'pending'));
    end if;
    return letter.attempts + 1;
end
$$;
comment on function tidemark.dead_letter_requeue(bigint, text) is
    'Lets the worker of a dead-lettered row try it once more. Returns the number of that attempt. '
    'The audit has why, if that is given. Raises TM004, TM013.';
grant execute on function tidemark.dead_letter_requeue(bigint, text) to tidemark_executor;
