-- public
create or replace function tidemark.gate_open(gate text)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    return exists (select from tidemark.setting s where s.key = gate and s.value = 'true');
end
$$;
comment on function tidemark.gate_open(text) is
    'True where the gate (routes.enabled, worker.<name>.enabled, notify.bridge_enabled) is open. A missing gate is '
    'closed. For gates of domains see tidemark.closed_domains. Source: S0 fn_iu_core_routes_enabled.';
grant execute on function tidemark.gate_open(text) to tidemark_reader, tidemark_executor;
