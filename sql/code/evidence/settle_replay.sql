create or replace function tidemark.settle_replay(
    id bigint, attempt_no integer, outcome tidemark.outcome, reason text, detail text)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    update tidemark.dead_letter l
    set attempts = settle_replay.attempt_no,
        last_failed_at = case settle_replay.outcome when 'failed' then clock_timestamp() else l.last_failed_at end,
        error_code = case settle_replay.outcome when 'failed' then settle_replay.reason else l.error_code end,
        error_detail = case settle_replay.outcome when 'failed' then settle_replay.detail else l.error_detail end,
        resolved_at = case when settle_replay.outcome in ('sent', 'skipped') then clock_timestamp() end,
        resolution = case when settle_replay.outcome in ('sent', 'skipped') then settle_replay.outcome::text end,
        resolved_by = case when settle_replay.outcome in ('sent', 'skipped') then tidemark.login() end
    where l.id = settle_replay.id;
end
$$;
comment on function tidemark.settle_replay(bigint, integer, tidemark.outcome, text, text) is
    'Records the end of a replay outside the database: the dead letter is resolved (sent, or skipped '
    'by the route''s transform), or has failed again.';
