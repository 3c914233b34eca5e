create or replace function tidemark.source_failures(
    plan tidemark.source_plan, page tidemark.source_page, failed tidemark.failed_row[])
returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    w constant tidemark.worker := plan.worker;
    s constant tidemark.source := plan.source;
    at constant timestamptz := clock_timestamp();
    login constant name := tidemark.login();
    gone tidemark.pending_row[];
    codes text[];
    messages text[];
    dead bigint;
begin
    if plan.step = 'retry' then
        -- Rows that succeeded this time. A successful replay resolves its dead letter.
        with done as (
            delete from tidemark.pending_row p
            where p.worker_id = w.id and p.source = s.source and p.shard = (plan.cursor).shard
              and p.item_id = any (page.ledger_ids) and p.item_id not in (select f.item_id from unnest(failed) f)
            returning p.*)
        update tidemark.dead_letter l
        set resolved_at = at, resolution = 'sent', resolved_by = login, attempts = l.attempts + 1
        from done d where l.id = d.dead_letter_id;
    end if;
    if cardinality(failed) = 0 then
        return 0;
    end if;

    -- Two rows may have the same id (of a partitioned table, in two partitions).
    failed := array(select distinct on (f.item_id) f from unnest(failed) f order by f.item_id);
    insert into tidemark.pending_row as p (worker_id, source, shard, item_id, item_ts, snapshot, last_error,
                                           next_attempt_at)
    select w.id, s.source, (plan.cursor).shard, f.item_id, f.item_ts, f.snapshot, f.code || ': ' || f.message, at
    from unnest(failed) f
    on conflict (worker_id, source, shard, item_id) do update
    set error_count = p.error_count + 1, last_error = excluded.last_error;

    with due as (
        select p.*, f.code, f.message,
               case when not f.permanent
                         then coalesce(make_interval(secs => f.delay),
                                       tidemark.retry_delay(w.retry_policy, p.error_count)) end as delay,
               p.error_count >= coalesce((w.retry_policy ->> 'max_attempts')::integer, 10) as last_one
        from unnest(failed) f
        join tidemark.pending_row p on p.worker_id = w.id and p.source = s.source and p.shard = (plan.cursor).shard
            and p.item_id = f.item_id
    ), again as (
        update tidemark.pending_row p set next_attempt_at = at + d.delay
        from due d
        where p.worker_id = d.worker_id and p.source = d.source and p.shard = d.shard and p.item_id = d.item_id
          and d.delay is not null and not d.last_one and d.dead_letter_id is null
    ), left_ as (
        delete from tidemark.pending_row p using due d
        where p.worker_id = d.worker_id and p.source = d.source and p.shard = d.shard and p.item_id = d.item_id
          and (d.delay is null or d.last_one or d.dead_letter_id is not null)
        returning p as row_, d.code, d.message)
    select array_agg(l.row_), array_agg(l.code), array_agg(l.message) into gone, codes, messages from left_ l;
    dead := tidemark.row_letters(w.worker, gone, codes, messages);
    if dead > 0 then
        perform tidemark.dead_letter_findings(w.worker, w.id,
                                              tidemark.executor_id(w.worker, s.source, (plan.cursor).shard), dead);
    end if;
    return dead;
end
$$;
comment on function tidemark.source_failures(tidemark.source_plan, tidemark.source_page, tidemark.failed_row[]) is
    'Schedules failed rows for another attempt, or dead-letters them after the last one, and marks retried rows that '
    'succeeded as done. Returns how many rows it dead-lettered.';
