create or replace function tidemark.settle_retried(
    worker text,
    worker_id integer,
    retried tidemark.result[],
    out dead bigint,
    out recorded tidemark.evidence[])
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
set jit = off
as $$
#variable_conflict use_column
declare
    at constant timestamptz := clock_timestamp();
    r tidemark.result;
    rows_ tid[];
    late tidemark.dead_letter[];
    due timestamptz;
    done tidemark.pending[];
    gone tidemark.pending[] := '{}';
    queued tidemark.pending[];
    routes integer[];
    keys text[];
    n bigint;
    tries integer;
begin
    dead := 0;
    recorded := '{}';
    -- One element for all events with the same outcome: a few statements.
    foreach r in array retried loop
        -- One lookup in the primary key for each event. A join would be planned by statistics of a table that is empty
        -- one minute and large the next, and would then read the whole table for each number.
        rows_ := array(
            select q.at
            from unnest(tidemark.multirange_numbers(r.seqs)) n
            cross join lateral (
                select p.ctid as at from tidemark.pending p
                where p.worker_id = settle_retried.worker_id and p.route_id = r.route_id and p.seq = n limit 1) q);
        if (r.outcome <> 'pending' or r.detail is not null)
            and cardinality(rows_) < (select sum(upper(s) - lower(s)) from unnest(r.seqs) s) then
            -- An operator gave up events whose deliveries were under way: what these came to belongs to the letters,
            -- and that of a discarded one if it was sent.
            late := array(
                select l from tidemark.dead_letter l
                where l.route_id = r.route_id and l.worker_id = settle_retried.worker_id and l.seq <@ r.seqs
                  and l.error_code = 'given_up'
                  -- One that waits has its own story, also beside a letter that is resolved: it is replayed.
                  and not exists (select from tidemark.pending p
                                  where p.worker_id = l.worker_id and p.route_id = l.route_id and p.seq = l.seq));
            perform tidemark.dead_letter_record(
                l.id, case r.outcome when 'pending' then 'failed' else r.outcome end, r.reason, r.detail, null)
            from unnest(late) l where l.resolved_at is null or r.outcome = 'sent';
            get diagnostics n = row_count;
            if n > 0 then
                recorded := recorded || row(
                    r.route_id, case r.outcome when 'pending' then 'failed' else r.outcome end, r.reason, r.detail, n,
                    null)::tidemark.evidence;
            end if;
            if r.outcome = 'sent' then
                -- Else a replay would find the mark, and not call the handler.
                delete from tidemark.handled h using unnest(late) l where h.route_id = r.route_id and h.seq = l.seq;
            end if;
        end if;
        continue when cardinality(rows_) = 0;
        due := case when r.delay is null then 'infinity' else at + make_interval(secs => r.delay) end;
        if r.outcome = 'pending' then
            -- Without detail the event was not tried after all (a closed gate, an open breaker, an earlier event of its
            -- key): that is no attempt.
            tries := (r.detail is not null)::integer;
            with waits as (
                update tidemark.pending p
                set attempt_no = p.attempt_no + tries, error_count = p.error_count + tries, held = false,
                    -- A delivery begins when its event is due: an operator has parked this one meanwhile.
                    next_attempt_at = case when p.next_attempt_at > at and p.next_attempt_at < 'infinity'
                                           then p.next_attempt_at else due end,
                    last_error = case tries when 1 then r.reason || ': ' || r.detail else p.last_error end,
                    suspects = case when tries = 0 and r.reason = 'suspect' then cardinality(rows_)
                                    else p.suspects end
                where p.ctid = any (rows_)
                returning p as row_
            ), tried as (
                insert into tidemark.attempt (seq, worker_id, route_id, attempt_no, outcome, reason, detail)
                select (w.row_).seq, worker_id, r.route_id, (w.row_).attempt_no, r.outcome, r.reason, r.detail
                from waits w where tries = 1
            )
            -- The event before it of its key may have been given up while this one was under way.
            select array_agg(w.row_) into queued from waits w where (w.row_).next_attempt_at = 'infinity';
            gone := gone || queued;
            if tries = 1 then
                recorded := recorded || row(
                    r.route_id, r.outcome, r.reason, r.detail, cardinality(rows_), null)::tidemark.evidence;
            end if;
            continue;
        end if;

        with left_ as (
            delete from tidemark.pending p
            where p.ctid = any (rows_)
            returning p as row_)
        select array_agg(l.row_) into done from left_ l;
        gone := gone || done;

        insert into tidemark.attempt (seq, worker_id, route_id, attempt_no, outcome, reason, detail)
        select d.seq, worker_id, r.route_id, d.attempt_no + 1, r.outcome, r.reason, r.detail from unnest(done) d;
        recorded := recorded || row(
            r.route_id, r.outcome, r.reason, r.detail, cardinality(done), null)::tidemark.evidence;

        -- Not of an event that was not pending: what made it so was never settled, and it is read again.
        if r.outcome = 'sent' then
            delete from tidemark.handled h using unnest(done) d where h.route_id = r.route_id and h.seq = d.seq;
        end if;

        perform tidemark.replay_count(array(select d.replay_id from unnest(done) d), r.outcome, r.reason);

        perform tidemark.settle_replay(d.dead_letter_id, d.attempt_no + 1, r.outcome, r.reason, r.detail)
        from unnest(done) d where d.dead_letter_id is not null;

        if r.outcome = 'failed' then
            insert into tidemark.dead_letter (idempotency_key, worker_id, route_id, seq, event_id, event_snapshot,
                                              payload_in_log, error_code, error_detail, attempts, first_failed_at,
                                              last_failed_at)
            select tidemark.attempt_key(settle_retried.worker, o.route_code, e.event_id), worker_id, o.id, e.seq,
                   e.event_id, e.snapshot, r.reason = 'unreadable', r.reason, r.detail, d.attempt_no + 1, d.created_at,
                   at
            from unnest(done) d
            cross join lateral tidemark.event_snapshots(
                int8multirange(int8range(d.seq, d.seq + 1)), r.reason is distinct from 'unreadable') e
            join tidemark.outbound_route o on o.id = r.route_id
            where d.dead_letter_id is null
            -- A replay of an event whose dead letter was resolved: the letter is open again, with its history in the
            -- attempts.
            on conflict (idempotency_key) do update
            set error_code = excluded.error_code, error_detail = excluded.error_detail, attempts = excluded.attempts,
                last_failed_at = excluded.last_failed_at, resolved_at = null, resolution = null, resolved_by = null,
                resolution_reason = null, logged = false;
            dead := dead + cardinality(done);
        end if;
    end loop;

    select array_agg(k.route_id), array_agg(k.key) into routes, keys
    from (select distinct g.route_id, g.key from unnest(gone) g where g.key is not null) k;
    if routes is not null then
        perform tidemark.release_keys(worker_id, routes, keys);
    end if;
end
$$;
comment on function tidemark.settle_retried(text, integer, tidemark.result[]) is
    'The part of tidemark.settle for events that were pending: done, dead-lettered, or to be tried again. Returns how '
    'many it dead-lettered, and how many attempts it has recorded, of each outcome, for tidemark.history_add.';
