create or replace function tidemark.command_claims_end(
    calls jsonb[], fate text[], results json[], ended timestamptz[])
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_sort = off
set jit = off
as $$
begin
    update tidemark.command_claim m
    set state = 'processed', result = results[d.n], processed_at = ended[d.n], error_code = null, error_message = null,
        attempts = 1 + coalesce((d.call ->> 'failed')::integer, 0),
        -- What was parked may have been so for longer than its retention. That of others stays.
        expires_at = case when d.call ? 'parked' then greatest(m.expires_at, ended[d.n] + (
            select k.retention from tidemark.command k
            where k.service = m.service and k.command = m.command and k.version = m.version)) else m.expires_at end
    from unnest(calls, fate) with ordinality d (call, fate, n)
    -- Rows of this transaction, or that it has locked; only the primary key has this order.
    cross join lateral (
        select q.ctid as place from tidemark.command_claim q
        where q.service = d.call ->> 'service'
          and q.idempotency_key between d.call ->> 'idempotency_key' and d.call ->> 'idempotency_key'
        order by q.idempotency_key limit 1) q
    where d.fate = 'claimed' and m.ctid = q.place;
end
$$;
comment on function tidemark.command_claims_end(jsonb[], text[], json[], timestamptz[]) is
    'Part of tidemark.command_batch: stores what the commands that ran have come to.';
