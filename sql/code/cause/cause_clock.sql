create or replace function tidemark.cause_clock()
returns setof tidemark.trouble
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_sort = off
set jit = off
as $$
#variable_conflict use_column
begin
    return query
    select 'clock_step', 'server',
           case when h.held > 0 or h.leases > 0 then 'bad' else 'warn' end, s.at,
           format('the clock of the server stepped %s by %s, as %s saw%s',
                  case when s.step < interval '0' then 'back' else 'forward' end, greatest(s.step, -s.step), s.seen_by,
                  case when s.step < interval '0'
                            then format('; %s%s deliveries, rows, commands or jobs wait for a time of the old clock, '
                                        'and %s leases of executors that do not beat last as long',
                                        case when h.held >= 10000 then 'at least ' end, h.held, h.leases)
                       else ', or its host stood still; nothing is held: retries and ends of leases came early' end),
           h.held, '{}'::text[], '{select * from tidemark.clock_settle(''the clock was stepped'');}'::text[],
           '{}'::text[]
    from tidemark.clock_step s
    cross join (select clock_timestamp() as clock) t
    cross join lateral (
        -- Each part reads what waits of a route, a cursor or a service in the order of an index, the latest first: that
        -- is what a step back holds.
        select case when s.step < interval '0' then
                   (select coalesce(sum(n.held), 0)::bigint
                    from tidemark.outbound_route r
                    cross join unnest('{f,t}'::boolean[]) y (replay)
                    cross join lateral (
                        select count(*) filter (where p.created_at > t.clock
                                                      or p.next_attempt_at > s.at - s.step) as held
                        from (select p.created_at, p.next_attempt_at from tidemark.pending p
                              where p.route_id = r.id and p.replay = y.replay and p.next_attempt_at > t.clock
                                and p.next_attempt_at < 'infinity'
                              order by p.next_attempt_at desc limit 10000) p) n)
                   + (select coalesce(sum(n.held), 0)::bigint
                      from tidemark.worker_cursor c
                      join tidemark.worker w on w.worker = c.worker
                      cross join lateral (
                          select count(*) filter (where p.created_at > t.clock
                                                        or p.next_attempt_at > s.at - s.step) as held
                          from (select p.created_at, p.next_attempt_at from tidemark.pending_row p
                                where p.worker_id = w.id and p.source = c.source and p.shard = c.shard
                                  and p.next_attempt_at > t.clock and p.next_attempt_at < 'infinity'
                                order by p.next_attempt_at desc limit 10000) p) n
                      where c.source <> 'outbox')
                   + (select coalesce(sum(n.held), 0)::bigint
                      from tidemark.service v
                      cross join lateral (
                          select count(*) filter (where p.first_failed_at > t.clock
                                                        or p.next_attempt_at > s.at - s.step) as held
                          from (select p.first_failed_at, p.next_attempt_at from tidemark.command_parked p
                                where p.service = v.service and p.next_attempt_at > t.clock
                                  and p.next_attempt_at < 'infinity'
                                order by p.next_attempt_at desc limit 10000) p) n)
                   + (select count(*) from tidemark.replay_job j
                      where j.finished_at is null and j.due_at > t.clock + tidemark.job_delay(j.rate))
                   + (select count(*) from tidemark.letter_job j
                      where j.finished_at is null and j.due_at > t.clock + tidemark.job_delay(j.rate))
                   else 0 end as held,
               (select count(*) from tidemark.heartbeat b
                where b.last_beat_at > t.clock and b.lease_until > t.clock) as leases
        offset 0) h -- or it is counted anew wherever it is used
    where s.settled_at is null and s.step <> interval '0';
end
$$;
comment on function tidemark.cause_clock() is
    'The part of tidemark.cause about steps of the server''s clock: clock_step, with what waits for a time of the old '
    'clock (bad: something does).';
grant execute on function tidemark.cause_clock() to tidemark_reader, tidemark_executor;
