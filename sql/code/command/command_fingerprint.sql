create or replace function tidemark.command_fingerprint(
    service text, tenant text, command text, version integer, payload jsonb)
returns bytea
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return sha256(convert_to(tidemark.canonical_json(jsonb_build_array(service, tenant, command, version, payload)),
                             'UTF8'));
end
$$;
comment on function tidemark.command_fingerprint(text, text, text, integer, jsonb) is
    'Tells one command from another under the same idempotency key: SHA-256 of the canonical form of [service, tenant '
    'or null, command, version, payload].';
grant execute on function tidemark.command_fingerprint(text, text, text, integer, jsonb)
    to tidemark_reader, tidemark_executor;
