create or replace function tidemark.command_findings()
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_sort = off
set jit = off
as $$
declare
    warn constant interval := tidemark.interval_setting('lag.warn', '1 minute');
    clock constant timestamptz := clock_timestamp(); -- which an index can use as a condition
    s record;
begin
    -- An upgrade has left it open. A command that an operator is setting has it from there.
    update tidemark.command c set unchecked = tidemark.contract_unchecked(c.payload_schema)
    where c.id = any (array(
        select k.id from tidemark.command k where k.unchecked is null for no key update skip locked));
    -- Its only proof is that the brokers let the producer write.
    if exists (select from tidemark.setting t where t.key = 'commands.shared_topic' and t.value = 'claimed') then
        perform tidemark.finding_open('producer_unproved', 'commands.shared_topic', 'warning',
            'the setting is claimed: each login that may write to a topic that services share can ask as any '
            'producer');
    else
        perform tidemark.finding_close('producer_unproved', 'commands.shared_topic');
    end if;
    for s in
        select v.service, w.since, w.n,
               coalesce(tidemark.closed_command(v.service), case when not tidemark.armed() then 'the stage' end) as gate
        from tidemark.service v cross join lateral (
            select count(*) as n, min(p.next_attempt_at) as since
            from (select p.next_attempt_at from tidemark.command_parked p
                  where p.service = v.service and p.next_attempt_at < clock - warn
                  order by p.next_attempt_at limit 10000) p) w
        order by v.service
    loop
        if s.n > 0 then
            perform tidemark.finding_open('command_waiting', s.service, 'warning',
                format('%s parked commands are due, the first since %s%s',
                       case when s.n = 10000 then '10000 or more' else s.n::text end, date_trunc('second', s.since),
                       '; closed by ' || s.gate));
        else
            perform tidemark.finding_close('command_waiting', s.service);
        end if;
    end loop;
    -- Closed by a success, or when no command waits for the operator any more.
    update tidemark.finding f set closed_at = clock_timestamp()
    where f.kind = 'command_circuit' and f.closed_at is null
      -- Not by EXISTS, which would be joined with all that is parked.
      and (select true from tidemark.command k
           cross join lateral (
               select from tidemark.command_parked p
               where p.service = k.service and p.sqlstate is not null and p.call ->> 'command' = k.command
                 and (p.call ->> 'command_version')::integer = k.version
                 and (tidemark.command_failure(p.sqlstate, '', '{}')).kind in ('operator', 'outage', 'canceled')
               limit 1) p
           where k.name = f.subject limit 1) is null;
end
$$;
comment on function tidemark.command_findings() is
    'Opens the finding command_waiting for each service whose parked commands are due for longer than the setting '
    'lag.warn, with the gate that holds them, and producer_unproved while the setting commands.shared_topic is '
    'claimed; closes them and command_circuit when they are over.';
