create or replace function tidemark.command_claims_end(calls jsonb[], results json[], ended timestamptz[])
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
begin
    update tidemark.command_claim m
    set state = 'processed', result = r.result, processed_at = r.ended, error_code = null, error_message = null,
        attempts = 1 + coalesce((r.call ->> 'failed')::integer, 0)
    from unnest(calls, results, ended) r (call, result, ended)
    where m.service = r.call ->> 'service' and m.idempotency_key = r.call ->> 'idempotency_key';
end
$$;
comment on function tidemark.command_claims_end(jsonb[], json[], timestamptz[]) is
    'Part of tidemark.command_effects: stores what the commands that ran have come to.';
