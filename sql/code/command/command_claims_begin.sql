-- This and tidemark.command_claims_end are functions of their own since they pin the planner's settings, which the
-- functions of commands must not inherit: a session that began with few claims would go on to read all of them.
create or replace function tidemark.command_claims_begin(calls jsonb[], at timestamptz)
returns text[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_sort = off
set jit = off
as $$
declare
    fate text[];
    parked bigint;
    twice bigint;
    retries bigint;
begin
    -- Sorted, so that two batches cannot wait for each other in a circle. Of equal keys in one batch the first claims.
    with input as (
        select e.n, e.call, e.call ->> 'service' as service, e.call ->> 'idempotency_key' as idempotency_key,
               k.retention, e.call ? 'parked' as parked,
               row_number() over (partition by e.call ->> 'service', e.call ->> 'idempotency_key'
                                  order by e.n) as place,
               -- One look for each, in the order that only the index of keys has: EXISTS would be made a hash of all
               -- that is parked.
               (select true from tidemark.command_parked p
                where p.service = e.call ->> 'service'
                  and p.key = coalesce(e.call ->> 'key', e.call ->> 'idempotency_key')
                order by p.position limit 1) is not null as behind
        from unnest(calls) with ordinality e (call, n)
        join tidemark.command k on k.service = e.call ->> 'service' and k.command = e.call ->> 'command'
                               and k.version = (e.call ->> 'command_version')::integer
    ), claimed as (
        insert into tidemark.command_claim as m (
            service, idempotency_key, fingerprint, state, event_id, command, version, tenant, producer, via, login,
            topic_id, partition, "offset", processed_at, attempts, expires_at, trace)
        select i.service, i.idempotency_key, decode(i.call ->> 'fingerprint', 'hex'),
               case when i.behind then 'failed_retryable' else 'processed' end, (i.call ->> 'event_id')::uuid,
               i.call ->> 'command', (i.call ->> 'command_version')::integer, i.call ->> 'tenant',
               i.call ->> 'producer', i.call ->> 'via', (i.call ->> 'login')::name, i.call ->> 'topic_id',
               (i.call ->> 'partition')::integer, (i.call ->> 'offset')::bigint, at,
               case when i.behind then 0 else 1 + coalesce((i.call ->> 'failed')::integer, 0) end,
               -- While the record is taken, by its own time, which may be ahead.
               greatest(at, (i.call ->> 'record_at')::timestamptz) + i.retention,
               coalesce(i.call ->> 'trace', i.call ->> 'trace_id')
        from input i where i.place = 1 and not i.parked
        order by i.service collate "C", i.idempotency_key collate "C"
        on conflict do nothing
        returning m.service, m.idempotency_key
    )
    -- By a hashed subplan: a join of what is estimated as few rows would compare each with each.
    select array_agg(case
        when i.parked then 'claimed'
        when i.place > 1 or (i.service, i.idempotency_key) not in (
            select m.service, m.idempotency_key from claimed m) then 'asked'
        when i.behind then 'behind' else 'claimed' end order by i.n),
        count(*) filter (where i.parked), count(*) filter (where i.parked and i.place > 1)
    into fate, parked, twice
    from input i;
    if parked > 0 then
        -- A retry: the claim is there, and no other session may take it up.
        perform from unnest(calls) e
        -- Only the primary keys have these orders.
        cross join lateral (
            select from tidemark.command_claim m
            where m.service = e ->> 'service'
              and m.idempotency_key between e ->> 'idempotency_key' and e ->> 'idempotency_key'
              and m.state = 'failed_retryable'
            order by m.idempotency_key limit 1 for no key update) m
        cross join lateral (
            select from tidemark.command_parked p
            where p.service = e ->> 'service'
              and p.idempotency_key between e ->> 'idempotency_key' and e ->> 'idempotency_key'
            order by p.idempotency_key limit 1 for no key update) p
        where e ? 'parked';
        get diagnostics retries = row_count;
        if retries <> parked or twice > 0 then
            raise exception using errcode = 'TM005', message = case when twice > 0
                    then 'a command is to be tried again twice in one batch'
                    else 'a command that is to be tried again is not parked' end,
                hint = 'Only tidemark.command_retry tries a command again.';
        end if;
    end if;
    return fate;
end
$$;
comment on function tidemark.command_claims_begin(jsonb[], timestamptz) is
    'Part of tidemark.command_batch: claims the keys of these commands, and tells of each what is to come of it: '
    'claimed (it runs), behind (an earlier command of its ordering key is parked) or asked (its key was claimed '
    'before). A parked one has its claim, which is locked. Raises TM005 for a retry of what is not parked, or given '
    'twice.';
