-- Granted to no role: it asks neither whether the letter is open nor for gates. tidemark.dead_letter_settle does, and
-- tidemark.settle_retried has the lease.
create or replace function tidemark.dead_letter_record(
    id bigint,
    outcome tidemark.outcome,
    reason text,
    detail text,
    why text)
returns integer
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    letter tidemark.dead_letter;
    resolves constant boolean := outcome in ('sent', 'dry_run')
        or outcome = 'skipped' and dead_letter_record.reason = 'transform';
begin
    update tidemark.dead_letter l
    set attempts = attempts + 1,
        last_failed_at = case outcome when 'failed' then clock_timestamp() else last_failed_at end,
        error_code = case outcome when 'failed' then dead_letter_record.reason else error_code end,
        error_detail = case outcome when 'failed' then dead_letter_record.detail else error_detail end,
        resolved_at = case when resolves then clock_timestamp() end,
        resolution = case when resolves then outcome::text end,
        resolved_by = case when resolves then tidemark.login() end
    where l.id = dead_letter_record.id
    returning l.* into strict letter;

    insert into tidemark.attempt (seq, worker_id, route_id, attempt_no, outcome, reason, detail)
    values (letter.seq, letter.worker_id, letter.route_id, letter.attempts, outcome, dead_letter_record.reason,
            dead_letter_record.detail);
    if outcome = 'pending' then
        insert into tidemark.pending (worker_id, route_id, seq, domain, attempt_no, key, replay, dead_letter_id)
        values (letter.worker_id, letter.route_id, letter.seq, letter.event_snapshot ->> 'domain', letter.attempts,
                letter.event_snapshot ->> 'key', true, letter.id);
    end if;
    if btrim(why) <> '' then
        insert into tidemark.audit (action, object, reason, after)
        values ('dead_letter_replay', 'dead_letter ' || letter.id, why,
                jsonb_build_object('attempt_no', letter.attempts, 'outcome', outcome));
    end if;
    return letter.attempts;
end
$$;
comment on function tidemark.dead_letter_record(bigint, tidemark.outcome, text, text, text) is
    'Records a replay: makes a new attempt, whose number it returns, and resolves the dead letter (sent, dry_run, or '
    'skipped by the route''s transform), marks it failed again, or leaves it pending. The audit has why, if that is '
    'given.';
