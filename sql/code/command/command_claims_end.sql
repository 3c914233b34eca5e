create or replace function tidemark.command_claims_end(
    calls jsonb[], fate text[], results json[], ended timestamptz[])
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
begin
    update tidemark.command_claim m
    set state = 'processed', result = results[d.n], processed_at = ended[d.n], error_code = null, error_message = null,
        attempts = 1 + coalesce((d.call ->> 'failed')::integer, 0)
    from unnest(calls, fate) with ordinality d (call, fate, n)
    where d.fate = 'claimed'
      and m.service = d.call ->> 'service' and m.idempotency_key = d.call ->> 'idempotency_key';
end
$$;
comment on function tidemark.command_claims_end(jsonb[], text[], json[], timestamptz[]) is
    'Part of tidemark.command_batch: stores what the commands that ran have come to.';
