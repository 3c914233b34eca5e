-- Inlined by its callers, so it has no search_path.
create or replace function tidemark.target_is_known(target_kind text)
returns boolean
language sql immutable parallel safe
as $$
    select target_kind in ('sql', 'notify', 'webhook', 'kafka', 'nats', 'river', 'stdout', 'go')
$$;
comment on function tidemark.target_is_known(text) is 'True: a route may name this kind of target.';
grant execute on function tidemark.target_is_known(text) to tidemark_reader, tidemark_executor;
