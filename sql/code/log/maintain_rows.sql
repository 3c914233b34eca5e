create or replace function tidemark.maintain_rows()
returns table (action text, object text, detail text)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    few_captures constant integer := 100;
    -- A constant: an index cannot use a condition that calls clock_timestamp(), and each call would read all rows.
    clock constant timestamptz := clock_timestamp();
    captured_until constant timestamptz := clock - tidemark.interval_setting('captured.retention', '30 days');
    n bigint;
begin
    return query select e.action, e.object, e.detail from tidemark.emit_keys_expire() e;

    with old as (
        delete from tidemark.captured c
        where c.id = any (array(select o.id from tidemark.captured o
                                where o.statements = 1
                                  and o.at < date_trunc('hour', clock) - interval '1 hour'
                                  and o.at <> date_trunc('hour', o.at)
                                order by o.at limit 10000))
        returning c.*
    ), summed as (
        insert into tidemark.captured (at, route_id, outcome, rows, statements, actor, reason)
        select date_trunc('hour', o.at), o.route_id, o.outcome, sum(o.rows), count(*), o.actor, o.reason
        from old o group by 1, 2, 3, 6, 7
    )
    select count(*) into n from old;
    if n > 0 then
        return query select 'summed up', 'captured', format('%s statements, by hour', n);
    end if;
    -- The claim of a parked command stays until the command is done.
    delete from tidemark.command_claim m
    where m.ctid = any (array(
        select c.ctid from tidemark.command_claim c
        where c.expires_at < clock and c.state <> 'failed_retryable' order by c.expires_at limit 10000));
    get diagnostics n = row_count;
    if n > 0 then
        return query select 'forgot', 'command_claim',
            format('%s claims past the retention of their commands%s', n,
                   case when n = 10000 then ', more are left for another call' else '' end);
    end if;
    delete from tidemark.command_record r
    where r.id = any (array(
        select c.id from tidemark.command_record c
        where c.recorded_at < clock - tidemark.interval_setting('command_record.retention', '90 days')
          and not exists (select from tidemark.dead_letter l
                          where l.idempotency_key = tidemark.command_letter_key(c.id, c.replays)
                            and l.resolved_at is null)
        order by c.recorded_at limit 10000));
    get diagnostics n = row_count;
    if n > 0 then
        return query select 'forgot', 'command_record',
            format('%s raw records past the setting command_record.retention', n);
    end if;
    perform tidemark.command_findings();
    perform tidemark.capture_mark_note();
    perform tidemark.capture_findings();
    perform tidemark.emit_findings();
    begin
        perform tidemark.capture_recount();
    exception when lock_not_available then
        return query select 'postponed', 'capture_count', 'an operator is at it; will be compared by another call';
    end;
    begin
        -- A look at all functions takes 0.3 ms for each. Where there are many, not each call pays it: captures go a
        -- longer way meanwhile, with the same result.
        return query
        select 'made', m, 'for what its table and its route are now'
        from (select from tidemark.inbound_route having count(*) <= few_captures or random() < 0.1) k
        cross join lateral tidemark.capture_refresh() m;
    exception when lock_not_available then
        return query select 'postponed', 'captures', 'an operator has it locked; another call will make it';
    end;
    delete from tidemark.captured c
    where c.at < captured_until;
    get diagnostics n = row_count;
    if n > 0 then
        return query select 'forgot', 'captured', format('%s rows past captured.retention', n);
    end if;

    return query select 'closed', 'finding ' || f.id, f.kind || ' ' || f.subject from tidemark.findings_over() f;

    delete from tidemark.finding f
    where f.id = any (array(
        select o.id from tidemark.finding o
        where o.closed_at < clock - tidemark.interval_setting('finding.retention', '90 days')
        order by o.closed_at limit 10000));
    get diagnostics n = row_count;
    if n > 0 then
        return query select 'forgot', 'finding', format('%s closed findings past the setting finding.retention', n);
    end if;

    delete from tidemark.api_answer a
    where a.ctid = any (array(
        select o.ctid from tidemark.api_answer o
        where o.at < clock - interval '1 day' order by o.at limit 10000 for update skip locked));
    get diagnostics n = row_count;
    if n > 0 then
        return query select 'forgot', 'api_answer', format('%s answers of the API older than a day', n);
    end if;

    return query
    delete from tidemark.heartbeat h
    where h.executor_id like 'daemon/%' and h.last_beat_at < clock_timestamp() - interval '1 day'
      -- Where each daemon is named after its pod, those that are lost never come back.
      and (h.last_status = 'stopped' or exists (
          select from tidemark.heartbeat_health o where o.executor_id like 'daemon/%' and o.state = 'alive'))
    returning 'forgot', 'heartbeat ' || h.executor_id,
              case when h.last_status = 'stopped' then 'stopped a day ago'
                   else 'silent for a day, and another daemon runs' end;
    -- Any check for silence makes what it misses anew.
    delete from tidemark.silence s
    where s.executor_id = any (array(
        select o.executor_id from tidemark.silence o
        where not exists (select from tidemark.heartbeat h where h.executor_id = o.executor_id)
        for update skip locked));

    delete from tidemark.cursor_sample s
    where not exists (select from tidemark.worker_cursor c
                      where c.worker = s.worker and c.source = s.source and c.shard = s.shard);
    delete from tidemark.source_unread n
    where not exists (select from tidemark.worker_cursor c
                      where c.worker = n.worker and c.source = n.source and c.shard = n.shard);
    -- How many events each cursor has seen. Several daemons call this: the rate must still cover a period of some
    -- length.
    insert into tidemark.cursor_sample as s (worker, source, shard, older_at, older_seen, newer_at, newer_seen)
    select c.worker, c.source, c.shard, clock_timestamp(), c.events_seen, clock_timestamp(), c.events_seen
    from tidemark.worker_cursor c
    on conflict (worker, source, shard) do update
    set older_at = s.newer_at, older_seen = s.newer_seen, newer_at = excluded.newer_at, newer_seen = excluded.newer_seen
    where s.newer_at not between excluded.newer_at - interval '50 seconds' and excluded.newer_at;

    perform tidemark.log_read_note();
    perform tidemark.lag_findings();
    perform tidemark.storage_note();
    -- A step back holds nothing any more when the clock is where it was.
    update tidemark.clock_step s set settled_at = clock_timestamp()
    where s.settled_at is null and clock_timestamp() > s.at + greatest(-s.step, interval '1 day');
    delete from tidemark.clock_step s where s.settled_at < clock_timestamp() - interval '90 days';

    n := tidemark.history_note();
    if n > 0 then
        return query select 'summed up', 'route_minute', format('%s minutes, by hour', n);
    end if;
    -- Last, since cursors with holes wait for the transaction from here on.
    -- Payloads are kept for a replay up to its end, which would stay open for as long as its route is off.
    update tidemark.replay_job j set passed_seq = e.passed_seq, last_seq = e.last_seq, open_end = e.open_end
    from (select tidemark.replay_end(r) as e from tidemark.replay_job r
          where r.open_end and r.finished_at is null for update skip locked) r
    cross join lateral (select (r.e).*) e
    where j.id = e.id;
    return query select e.action, e.object, e.detail from tidemark.payloads_expire() e;
end
$$;
comment on function tidemark.maintain_rows() is
    'The part of tidemark.maintain_all that keeps no writer waiting: deletes rows that are past their retention, looks '
    'for findings, keeps the history, and erases payloads.';
