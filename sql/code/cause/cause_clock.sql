create or replace function tidemark.cause_clock()
returns setof tidemark.trouble
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return query
    select 'clock_step', 'server',
           case when h.held > 0 or h.leases > 0 then 'bad' else 'warn' end, s.at,
           format('the clock of the server stepped %s by %s, as %s saw%s',
                  case when s.step < interval '0' then 'back' else 'forward' end, greatest(s.step, -s.step), s.seen_by,
                  case when s.step < interval '0'
                            then format('; %s%s deliveries, rows or commands wait for a time of the old clock, and %s '
                                        'leases of executors that do not beat last as long',
                                        case when h.held >= 10000 then 'at least ' end, h.held, h.leases)
                       else ', or its host stood still; nothing is held: retries and ends of leases came early' end),
           h.held, '{}'::text[], '{select * from tidemark.clock_settle(''the clock was stepped'');}'::text[],
           '{}'::text[]
    from tidemark.clock_step s
    cross join (select clock_timestamp() as clock) t
    cross join lateral (
        select case when s.step < interval '0' then
                   (select count(*) from (select from tidemark.pending p
                                          where p.next_attempt_at > t.clock and isfinite(p.next_attempt_at)
                                            and (p.created_at > t.clock or p.next_attempt_at > s.at - s.step)
                                          limit 10000) p)
                   + (select count(*) from (select from tidemark.pending_row p
                                            where p.next_attempt_at > t.clock and isfinite(p.next_attempt_at)
                                              and (p.created_at > t.clock or p.next_attempt_at > s.at - s.step)
                                            limit 10000) p)
                   + (select count(*) from (select from tidemark.command_parked p
                                            where p.next_attempt_at > t.clock and isfinite(p.next_attempt_at)
                                              and (p.first_failed_at > t.clock or p.next_attempt_at > s.at - s.step)
                                            limit 10000) p)
                   else 0 end as held,
               (select count(*) from tidemark.heartbeat b
                where b.last_beat_at > t.clock and b.lease_until > t.clock) as leases) h
    where s.settled_at is null and s.step <> interval '0';
end
$$;
comment on function tidemark.cause_clock() is
    'The part of tidemark.cause about steps of the server''s clock: clock_step, with what waits for a time of the old '
    'clock (bad: something does).';
grant execute on function tidemark.cause_clock() to tidemark_reader, tidemark_executor;
