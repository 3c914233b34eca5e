create or replace function tidemark.replay_count(replays bigint[], outcome tidemark.outcome, reason text)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    if cardinality(array_remove(replays, null)) = 0 then
        return;
    end if;
    -- Locked first: a pass that stages more holds it, and its events have to be seen below.
    perform from tidemark.replay_job j where j.id = any (replays) order by j.id for update;
    update tidemark.replay_job j
    set sent = j.sent + case replay_count.outcome when 'sent' then k.n else 0 end,
        failed = j.failed + case replay_count.outcome when 'failed' then k.n else 0 end,
        left_out = case replay_count.outcome
            when 'skipped' then tidemark.jsonb_add(j.left_out, jsonb_build_object(replay_count.reason, k.n))
            else j.left_out end,
        finished_at = coalesce(j.finished_at, case when j.passed_seq >= j.last_seq
            and not exists (select from tidemark.pending p where p.replay_id = j.id) then clock_timestamp() end)
    from (select r.id, count(*) as n from unnest(replays) r (id) where r.id is not null group by 1) k
    where j.id = k.id;
end
$$;
comment on function tidemark.replay_count(bigint[], tidemark.outcome, text) is
    'Counts an outcome in the replays of events that are no longer pending: for each its replay, or null. A replay '
    'that has staged all and of which nothing is pending is over.';
