create or replace function tidemark.command_replay_one(wanted jsonb, record bigint, failed boolean, count_only boolean)
returns text
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    at constant timestamptz := clock_timestamp();
    claim tidemark.command_claim;
    c tidemark.command;
    code text;
    taken boolean;
    kept tidemark.command_record;
begin
    select m.* into claim from tidemark.command_claim m
    where m.service = wanted ->> 'service' and m.idempotency_key = wanted ->> 'idempotency_key';
    if claim.service is not null then
        if encode(claim.fingerprint, 'hex') is distinct from wanted ->> 'fingerprint'
           or claim.producer is distinct from wanted ->> 'producer' then
            return 'key_reused';
        elsif claim.state = 'processed' or claim.state = 'failed_terminal' and not failed then
            return claim.state;
        elsif claim.state = 'failed_retryable' then
            -- One that a session is trying is left to it, and one that waits behind others has no lock: a session that
            -- releases those makes it due.
            update tidemark.command_parked p set next_attempt_at = at
            where not count_only and (p.service, p.idempotency_key) in (
                select q.service, q.idempotency_key from tidemark.command_parked q
                where q.service = claim.service and q.idempotency_key = claim.idempotency_key
                  and q.next_attempt_at > at and q.next_attempt_at < 'infinity' for no key update skip locked);
            return 'parked';
        end if;
    end if;
    -- By the contract and the allowlist of now.
    select p.code into code from tidemark.command_problem(wanted, tidemark.command_of(wanted)) p;
    -- A claim says what became of the key, however old the record is.
    if code is not null and (code <> 'idempotency.expired' or claim.service is null) then
        return code;
    end if;
    c := tidemark.command_of(wanted);
    if not c.enabled or c.dry_run then
        return 'not_live'; -- parked, it would hold up those of its key that come next
    elsif wanted ->> 'judged' <> md5(c.payload_schema::text)
          -- Null: an upgrade has left it to tidemark.maintain to look.
          and coalesce(c.unchecked, tidemark.contract_unchecked(c.payload_schema)) <> '{}' then
        return 'schema_changed'; -- the daemon has judged it by another one, and SQL checks that of now in part only
    elsif count_only then
        return case when claim.service is null then 'runs' else 'runs_again' end;
    end if;

    if claim.service is null then
        taken := tidemark.command_claim_add(wanted, c, 'failed_retryable', null, null, 0, at);
    else
        update tidemark.command_claim m
        set state = 'failed_retryable', expires_at = greatest(m.expires_at, at + c.retention)
        where m.service = claim.service and m.idempotency_key = claim.idempotency_key and m.state = 'failed_terminal';
        taken := found;
    end if;
    if not taken then
        return 'parked'; -- another session has taken it up since
    end if;
    select r.* into kept from tidemark.command_record r
    where r.id = record
       or record is null and r.topic_id = wanted ->> 'topic_id' and r.partition = (wanted ->> 'partition')::integer
          and r."offset" = (wanted ->> 'offset')::bigint
    order by r.id = record desc, r.replays desc limit 1;
    perform tidemark.command_park(wanted || jsonb_build_object('replays', coalesce(kept.replays, 0) + 1), at, 0, null);
    -- If it fails again, it gets another dead letter.
    update tidemark.command_record r set replayed_at = at
    where r.id = record
       or r.topic_id = wanted ->> 'topic_id' and r.partition = (wanted ->> 'partition')::integer
          and r."offset" = (wanted ->> 'offset')::bigint;
    update tidemark.dead_letter l
    set resolved_at = at, resolution = 'replayed', resolved_by = tidemark.login(),
        resolution_reason = current_setting('tidemark.reason', true)
    where l.idempotency_key = tidemark.command_letter_key(kept.id, kept.replays) and l.resolved_at is null;
    return case when claim.service is null then 'runs' else 'runs_again' end;
end
$$;
comment on function tidemark.command_replay_one(jsonb, bigint, boolean, boolean) is
    'Replays a checked command, whose record is in tidemark.command_record, or (record null) comes from its topic: it '
    'is parked behind the others of its ordering key, and runs by tidemark.command_retry. Returns what becomes of it: '
    'runs (its key was never claimed), runs_again (it was failed_terminal, and failed is true), parked (it was, and is '
    'due now), processed or failed_terminal (left as it is), key_reused, not_live (the command is off or in dry run), '
    'schema_changed (since the daemon has checked the payload, and SQL does not check all of the schema), '
    'or the reason code for which it is refused. count_only: nothing is written.';
