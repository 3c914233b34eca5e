create or replace function tidemark.target_is_known(target_kind text)
returns boolean
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return target_kind in ('sql', 'notify', 'webhook', 'kafka', 'nats', 'river', 'stdout', 'go');
end
$$;
comment on function tidemark.target_is_known(text) is 'True: a route may name this kind of target.';
grant execute on function tidemark.target_is_known(text) to tidemark_reader, tidemark_executor;
