-- public
create or replace function tidemark.clock_settle(reason text)
returns table (what text, rows bigint)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    clock timestamptz;
    done tidemark.clock_step;
    patience constant text := current_setting('lock_timeout');
    until_ constant timestamptz := clock_timestamp() + coalesce(nullif(patience, '0')::interval, interval '2 seconds');
    executor_ text;
    holder text;
    more bigint;
begin
    if coalesce(btrim(reason), '') = '' then
        raise exception using errcode = 'TM005', message = 'a reason is missing',
            hint = 'Say why: select * from tidemark.clock_settle(''…'');';
    end if;
    -- Of two calls at once the second finds nothing to do.
    update tidemark.clock_step s set settled_at = clock_timestamp() where s.settled_at is null
    returning s.* into done;
    if not found then
        return;
    end if;
    if done.step < interval '0' then
        -- Settling is serial (tidemark.lease_check), and this is a part of it: a settle finds its rows by their places,
        -- and would not find one that moves meanwhile; its event would be delivered twice. The cursors of commands are
        -- locked in the order of tidemark.command_passes_begin, the others in that of tidemark.pending_claim.
        -- While this waits, beats wait behind it: not until leases end, as for a pass that takes minutes.
        begin
            for executor_ in
                select h.executor_id from tidemark.heartbeat h
                join tidemark.worker_cursor c on h.executor_id = tidemark.executor_id(c.worker, c.source, c.shard)
                order by c.source, case when c.worker = 'commands' then c.shard end, h.executor_id
            loop
                holder := format('a pass of %s is under way', executor_);
                perform set_config('lock_timeout', ceil(extract(epoch from greatest(
                    until_ - clock_timestamp(), interval '1 ms')) * 1000)::text, true);
                perform from tidemark.heartbeat h where h.executor_id = executor_ for update;
            end loop;
            -- From here on for each lock.
            holder := 'deliveries, commands or jobs that wait are locked by another session';
            perform set_config('lock_timeout', ceil(extract(epoch from greatest(
                until_ - clock_timestamp(), interval '1 ms')) * 1000)::text, true);
            -- Read after the wait: a lease that was renewed meanwhile would end before its owner knows.
            clock := clock_timestamp();
            -- First, in the order of tidemark.letter_job_step and tidemark.replay_cancel.
            what := 'jobs';
            update tidemark.replay_job j set due_at = greatest(j.due_at + done.step, clock)
            where j.finished_at is null and j.due_at > clock + tidemark.job_delay(j.rate);
            get diagnostics rows = row_count;
            update tidemark.letter_job j set due_at = greatest(j.due_at + done.step, clock)
            where j.finished_at is null and j.due_at > clock + tidemark.job_delay(j.rate);
            get diagnostics more = row_count;
            rows := rows + more;
            return next;
            what := 'deliveries';
            update tidemark.pending p set next_attempt_at = greatest(p.next_attempt_at + done.step, clock)
            where p.next_attempt_at > clock and isfinite(p.next_attempt_at)
              and (p.created_at > clock or p.next_attempt_at > done.at - done.step);
            get diagnostics rows = row_count;
            return next;
            what := 'rows of tables';
            update tidemark.pending_row p set next_attempt_at = greatest(p.next_attempt_at + done.step, clock)
            where p.next_attempt_at > clock and isfinite(p.next_attempt_at)
              and (p.created_at > clock or p.next_attempt_at > done.at - done.step);
            get diagnostics rows = row_count;
            return next;
            what := 'commands';
            update tidemark.command_parked p set next_attempt_at = greatest(p.next_attempt_at + done.step, clock)
            where p.next_attempt_at > clock and isfinite(p.next_attempt_at)
              and (p.first_failed_at > clock or p.next_attempt_at > done.at - done.step);
            get diagnostics rows = row_count;
            return next;
            -- Its owner measures a lease by a clock of its own, from the last beat: it lasts no longer from now on.
            what := 'heartbeats and leases';
            update tidemark.heartbeat h
            set lease_until = clock + (h.lease_until - h.last_beat_at), last_beat_at = clock
            where h.last_beat_at > clock;
            get diagnostics rows = row_count;
            return next;
        exception when lock_not_available then
            raise exception using errcode = 'lock_not_available', message = holder,
                hint = 'Nothing was changed: call it again. To wait longer, while beats and passes wait: '
                    'set lock_timeout = ''10s'';';
        end;
        perform set_config('lock_timeout', patience, true);
    end if;
    insert into tidemark.audit (action, object, reason, before)
    values ('clock_settle', 'clock_step ' || done.id, clock_settle.reason, to_jsonb(done));
end
$$;
comment on function tidemark.clock_settle(text) is
    'Makes up for a step of the server''s clock back (tidemark.clock_step): deliveries, rows of tables, commands, '
    'replays and jobs of dead letters that wait for a time of the old clock are due as much sooner, and leases of '
    'those that died last no longer than they would have. Returns what it changed; no rows: no step is open. A step '
    'forward holds nothing. Workers of sources that are read by time are not concerned: see the finding '
    'source_clock_back. Waits for passes under way, while beats and other passes wait for it: for 2 seconds, or the '
    'lock_timeout of the session, and then for each row that another session has locked, for what is left of them. '
    'Then it raises lock_not_available (55P03) and has changed nothing: call it again. Raises TM005 without a reason.';
grant execute on function tidemark.clock_settle(text) to tidemark_admin;
