-- A function of its own, as tidemark.command_claims_begin is: it pins the planner's settings.
create or replace function tidemark.command_retry_begin(
    services text[], idempotency_keys text[], most integer, out service text, out idempotency_key text,
    out calls jsonb[])
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_sort = off
set jit = off
as $$
#variable_conflict use_column
declare
    at constant timestamptz := clock_timestamp();
    heads record;
begin
    -- What another session took up meanwhile is left to it. With the first one of a key its followers are this
    -- session's, too. Each is looked up by the primary key: only that has this order.
    select array_agg(h.service order by h.n) as services, array_agg(h.idempotency_key order by h.n) as keys
    into heads
    from (
        select p.service, p.idempotency_key, u.n
        from unnest(services, idempotency_keys) with ordinality u (service, idempotency_key, n)
        cross join lateral (
            select p.service, p.idempotency_key from tidemark.command_parked p
            where p.service = u.service and p.idempotency_key between u.idempotency_key and u.idempotency_key
              and p.next_attempt_at <= at
            order by p.idempotency_key limit 1 for no key update skip locked) p) h;
    service := heads.services[1];
    idempotency_key := heads.keys[1];
    -- Before their claims, and up to one that was given up since.
    with line as (
        select l.service, l.idempotency_key, l.n,
               row_number() over (partition by l.service, l.key order by l.n) as place
        from tidemark.command_line(heads.services, heads.keys, most) with ordinality
            l (service, idempotency_key, position, key, call, error_count, next_attempt_at, first_failed_at, sqlstate,
               n)
    ), locked as materialized (
        select l.service, l.idempotency_key, p.key, p.call, l.n, l.place from line l
        cross join lateral (
            select p.key, p.call from tidemark.command_parked p
            where p.service = l.service and p.idempotency_key between l.idempotency_key and l.idempotency_key
            order by p.idempotency_key limit 1 for no key update) p
    )
    select array_agg(l.call || jsonb_build_object('parked', true, 'failed', m.attempts) order by l.n) into calls
    from (select o.*, row_number() over (partition by o.service, o.key order by o.n) as nth from locked o) l
    cross join lateral (
        select m.attempts from tidemark.command_claim m
        where m.service = l.service and m.idempotency_key between l.idempotency_key and l.idempotency_key
        order by m.idempotency_key limit 1) m
    where l.nth = l.place;
end
$$;
comment on function tidemark.command_retry_begin(text[], text[], integer) is
    'Part of tidemark.command_retry_batch: locks those of these parked commands that are due and no other session is '
    'trying, and those behind them, at most so many. Returns the first, and the calls of all.';
