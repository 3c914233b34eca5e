create or replace function tidemark.attempt_key(worker text, route_code text, event_id uuid)
returns text
language sql immutable parallel safe
as $$
    select 'tm:' || worker || ':' || coalesce(route_code, '-') || ':' || event_id
$$;
comment on function tidemark.attempt_key(text, text, uuid) is
    'Idempotency key of a decision, tm:{worker}:{route}:{event_id}; "-" stands where no route matched. Source: S0 '
    'iu_wrk:{worker}:{route}:{event_id}.';
grant execute on function tidemark.attempt_key(text, text, uuid) to tidemark_reader, tidemark_executor;
