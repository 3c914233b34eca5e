create or replace function tidemark.retry_delay(policy jsonb, failed integer)
returns interval
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Null: no other attempt. Spread, so that what failed together does not come back together.
    return case when failed < coalesce((policy ->> 'max_attempts')::integer, 10) then make_interval(secs =>
        least(coalesce((policy ->> 'base_seconds')::double precision, 1) * 2 ^ least(failed - 1, 60),
              coalesce((policy ->> 'max_seconds')::double precision, 3600))
        * (1 + coalesce((policy ->> 'jitter')::double precision, 0.2) * (2 * random() - 1))) end;
end
$$;
comment on function tidemark.retry_delay(jsonb, integer) is
    'How long an event or row waits before its next attempt after it failed this many times. Null: the last attempt '
    'was made. The policy is that of tidemark.outbound_route.retry_policy.';
grant execute on function tidemark.retry_delay(jsonb, integer) to tidemark_executor;
