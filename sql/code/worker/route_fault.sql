-- Inlined by its callers, so it has no search_path.
create or replace function tidemark.route_fault(target_kind text, retry_policy jsonb)
returns text
language sql immutable parallel safe
as $$
    select case
        when not tidemark.target_is_known(target_kind) then 'unknown_target_kind'
        when retry_policy is not null and not tidemark.retry_policy_ok(retry_policy) then 'bad_retry_policy'
    end
$$;
comment on function tidemark.route_fault(text, jsonb) is
    'Why a route can decide no event, whatever the event: unknown_target_kind, bad_retry_policy. Null: it can.';
grant execute on function tidemark.route_fault(text, jsonb) to tidemark_reader, tidemark_executor;
