-- This and tidemark.command_claims_end are functions of their own since they pin the planner's settings, which the
-- functions of commands must not inherit: a session that began with few claims would go on to read all of them.
create or replace function tidemark.command_claims_begin(calls jsonb[], at timestamptz)
returns text[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    anything constant boolean := exists (select from tidemark.command_parked);
    keys text[];
    states text[];
    fate text[] := '{}';
    item jsonb;
    place integer;
begin
    -- Sorted, so that two batches cannot wait for each other in a circle. Of equal keys in one batch the first claims.
    with claimed as (
        insert into tidemark.command_claim as m (
            service, idempotency_key, fingerprint, state, event_id, command, version, tenant, producer, via, login,
            topic_id, partition, "offset", processed_at, attempts, expires_at)
        select k.service, e.call ->> 'idempotency_key', decode(e.call ->> 'fingerprint', 'hex'),
               case when b.behind then 'failed_retryable' else 'processed' end, (e.call ->> 'event_id')::uuid,
               k.command, k.version, e.call ->> 'tenant', e.call ->> 'producer', e.call ->> 'via',
               (e.call ->> 'login')::name, e.call ->> 'topic_id', (e.call ->> 'partition')::integer,
               (e.call ->> 'offset')::bigint, at,
               case when b.behind then 0 else 1 + coalesce((e.call ->> 'failed')::integer, 0) end, at + k.retention
        from unnest(calls) with ordinality e (call, n)
        join tidemark.command k on k.service = e.call ->> 'service' and k.command = e.call ->> 'command'
                               and k.version = (e.call ->> 'command_version')::integer
        cross join lateral (
            select anything and exists (
                select from tidemark.command_parked p
                where p.service = e.call ->> 'service'
                  and p.key = coalesce(e.call ->> 'key', e.call ->> 'idempotency_key')) as behind) b
        where not e.call ? 'parked'
        order by k.service collate "C", (e.call ->> 'idempotency_key') collate "C", e.n
        on conflict do nothing
        returning m.service, m.idempotency_key, m.state
    )
    select array_agg(array[m.service, m.idempotency_key]::text), array_agg(m.state) into keys, states from claimed m;
    foreach item in array calls loop
        if item ? 'parked' then
            -- A retry: the claim is there, and no other session may take it up.
            perform from tidemark.command_claim m
            join tidemark.command_parked p on p.service = m.service and p.idempotency_key = m.idempotency_key
            where m.service = item ->> 'service' and m.idempotency_key = item ->> 'idempotency_key'
              and m.state = 'failed_retryable' for no key update of m, p;
            if not found then
                raise exception using errcode = 'TM005', message = 'a command that is to be tried again is not parked',
                    hint = 'Only tidemark.command_retry tries a command again.';
            end if;
            fate := fate || 'claimed'::text;
            continue;
        end if;
        place := array_position(keys, array[item ->> 'service', item ->> 'idempotency_key']::text);
        fate := fate || case when place is null then 'asked' when states[place] = 'processed' then 'claimed'
                             else 'behind' end;
        if place is not null then
            keys[place] := null;
        end if;
    end loop;
    return fate;
end
$$;
comment on function tidemark.command_claims_begin(jsonb[], timestamptz) is
    'Part of tidemark.command_effects: claims the keys of these commands, and tells of each what is to come of it: '
    'claimed (it runs), behind (an earlier command of its ordering key is parked) or asked (its key was claimed '
    'before). A parked one has its claim, which is locked. Raises TM005 for a retry of what is not parked.';
