create or replace function tidemark.command_problem(
    call jsonb, c tidemark.command, out code text, out message text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    allowed text[];
    rows_ integer;
    -- What did not come from Kafka has the time at which it was kept.
    record_at constant timestamptz := coalesce(call ->> 'record_at', call ->> 'kept_at');
    age constant interval := clock_timestamp() - record_at;
    -- Claims of records from before a longer retention are kept for the shorter one.
    kept constant interval := case when record_at < c.retention_from then least(c.retention, c.retention_before)
                                   else c.retention end;
    ahead constant interval := '1 day'; -- may the clock be with which the record was dated
begin
    -- By the settings and keys of now: the command may have waited since its producer was verified. kid: from the
    -- daemon, of a signature; earlier releases did not tell.
    if call ->> 'via' = 'claimed' and not exists (
        select from tidemark.setting s where s.key = 'commands.shared_topic' and s.value = 'claimed') then
        code := 'identity.signature_missing';
        message := 'the record has no signature, and the setting commands.shared_topic asks for one';
        return;
    elsif call ? 'kid' and not exists (
        select from tidemark.producer_key k where k.kid = call ->> 'kid' and k.revoked_at is null) then
        code := 'identity.key_revoked';
        message := 'the key is revoked';
        return;
    end if;
    if c.id is null then
        if not exists (select from tidemark.service s where s.service = call ->> 'service') then
            code := 'contract.unknown_service';
            message := format('service: found %s, wanted a registered service', call ->> 'service');
            return;
        end if;
        code := case when exists (select from tidemark.command k
                                  where k.service = call ->> 'service' and k.command = call ->> 'command')
                          then 'contract.unsupported_version' else 'contract.unknown_command' end;
        message := case code when 'contract.unknown_command'
            then format('command: found %s, wanted a command of service %s', call ->> 'command', call ->> 'service')
            else format('command_version: found %s, wanted one of %s', call ->> 'command_version', (
                select string_agg(k.version::text, ', ' order by k.version) from tidemark.command k
                where k.service = call ->> 'service' and k.command = call ->> 'command')) end;
        return;
    elsif (call ->> 'schema_version')::integer > c.schema_version then
        code := 'contract.unknown_schema_version';
        message := format('schema_version: found %s, wanted at most %s', call ->> 'schema_version', c.schema_version);
        return;
    end if;

    -- The narrowest row decides about tenants.
    select p.tenants, 1 into allowed, rows_ from tidemark.command_producer p
    where p.service = c.service and p.producer = call ->> 'producer' and coalesce(p.command, c.command) = c.command
      and coalesce(p.version, c.version) = c.version
    order by p.command is null, p.version is null limit 1;
    if rows_ is null then
        code := 'identity.producer_not_allowed';
        message := format('metadata.producer: found a producer that is not on the allowlist of %s', c.name);
    -- allowed is null: without a tenant.
    elsif coalesce('*' <> all (allowed) and coalesce(call ->> 'tenant' <> all (allowed), true),
                   call ->> 'tenant' is not null) then
        code := 'identity.tenant_not_allowed';
        message := case when call ->> 'tenant' is null
                        then 'metadata.tenant: found nothing, wanted one of the producer''s tenants'
                   else 'metadata.tenant: found a tenant for which the producer is not allowed' end;
    else
        -- The daemon has checked the payload by the whole schema, unless that has changed since.
        if call ? 'misfit' then
            message := case call -> 'misfit' ->> 'schema' when md5(c.payload_schema::text)
                       then call -> 'misfit' ->> 'message' end;
        end if;
        if message is null then
            select string_agg(e, '; ' order by e) into message
            from (select e from tidemark.contract_errors(call -> 'payload', c.payload_schema) e limit 20) e;
        end if;
        if message is not null then
            code := 'contract.payload_invalid';
            message := tidemark.command_message('payload ' || message);
        elsif age > kept or age < -ahead then
            code := 'idempotency.expired';
            message := case when age > kept
                then format('the record is %s old, and claims are kept for %s', date_trunc('second', age), kept)
                else format('the time of the record is %s ahead of the database''s, and may be %s ahead',
                            date_trunc('second', -age), ahead) end;
        elsif not c.enabled and c.when_disabled = 'reject' then
            code := 'contract.disabled';
            message := format('command %s is off', c.name);
        end if;
    end if;
end
$$;
comment on function tidemark.command_problem(jsonb, tidemark.command) is
    'Why a command may not run, in the order of the checks: signature, service, command, version, schema version, '
    'producer, tenant, payload, age of the record, policy of a command that is off. Null: it may. c: '
    'tidemark.command_of(call).';
