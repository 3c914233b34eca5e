create or replace function tidemark.audit_change()
returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    before constant jsonb := case when tg_op <> 'INSERT' then to_jsonb(old) end;
    after constant jsonb := case when tg_op <> 'DELETE' then to_jsonb(new) end;
begin
    if before is distinct from after then
        insert into tidemark.audit (action, object, reason, before, after)
        values (lower(tg_op), tg_table_name || ' ' || coalesce(coalesce(after, before) ->> tg_argv[0], ''),
                nullif(current_setting('tidemark.reason', true), ''), before, after);
    end if;
    return null;
end
$$;
comment on function tidemark.audit_change() is
    'Trigger: records who changed a configuration row, what it was and is, and why (setting tidemark.reason). Its '
    'argument names the column that identifies the row.';

create or replace trigger domain_audit
after insert or update or delete on tidemark.domain
for each row execute function tidemark.audit_change('domain');
comment on trigger domain_audit on tidemark.domain is 'Every change goes to tidemark.audit.';

create or replace trigger event_type_audit
after insert or update or delete on tidemark.event_type
for each row execute function tidemark.audit_change('type');
comment on trigger event_type_audit on tidemark.event_type is 'Every change goes to tidemark.audit.';

create or replace trigger forbidden_key_audit
after insert or update or delete on tidemark.forbidden_key
for each row execute function tidemark.audit_change('key');
comment on trigger forbidden_key_audit on tidemark.forbidden_key is 'Every change goes to tidemark.audit.';

create or replace trigger heartbeat_kind_audit
after insert or update or delete on tidemark.heartbeat_kind
for each row execute function tidemark.audit_change('kind');
comment on trigger heartbeat_kind_audit on tidemark.heartbeat_kind is 'Every change goes to tidemark.audit.';

create or replace trigger inbound_route_audit
after insert or update or delete on tidemark.inbound_route
for each row execute function tidemark.audit_change('route_code');
comment on trigger inbound_route_audit on tidemark.inbound_route is 'Every change goes to tidemark.audit.';

create or replace trigger outbound_route_audit
after insert or update or delete on tidemark.outbound_route
for each row execute function tidemark.audit_change('route_code');
comment on trigger outbound_route_audit on tidemark.outbound_route is 'Every change goes to tidemark.audit.';

create or replace trigger setting_audit
after insert or update or delete on tidemark.setting
for each row execute function tidemark.audit_change('key');
comment on trigger setting_audit on tidemark.setting is 'Every change goes to tidemark.audit.';

create or replace trigger source_audit
after insert or update or delete on tidemark.source
for each row execute function tidemark.audit_change('source');
comment on trigger source_audit on tidemark.source is 'Every change goes to tidemark.audit.';

create or replace trigger stage_audit
after insert or update or delete on tidemark.stage
for each row execute function tidemark.audit_change('stage');
comment on trigger stage_audit on tidemark.stage is 'Every change goes to tidemark.audit.';

create or replace trigger worker_audit
after insert or update or delete on tidemark.worker
for each row execute function tidemark.audit_change('worker');
comment on trigger worker_audit on tidemark.worker is 'Every change goes to tidemark.audit.';

create or replace trigger command_audit
after insert or update or delete on tidemark.command
for each row execute function tidemark.audit_change('name');
comment on trigger command_audit on tidemark.command is 'Every change goes to tidemark.audit.';

create or replace trigger command_producer_audit
after insert or update or delete on tidemark.command_producer
for each row execute function tidemark.audit_change('id');
comment on trigger command_producer_audit on tidemark.command_producer is 'Every change goes to tidemark.audit.';

create or replace trigger producer_key_audit
after insert or update or delete on tidemark.producer_key
for each row execute function tidemark.audit_change('kid');
comment on trigger producer_key_audit on tidemark.producer_key is 'Every change goes to tidemark.audit.';

create or replace trigger service_audit
after insert or update or delete on tidemark.service
for each row execute function tidemark.audit_change('service');
comment on trigger service_audit on tidemark.service is 'Every change goes to tidemark.audit.';

create or replace trigger pack_audit
after insert or delete on tidemark.pack
for each row execute function tidemark.audit_change('pack');
comment on trigger pack_audit on tidemark.pack is 'Every pack that comes or goes is in tidemark.audit.';

create or replace trigger pack_change_audit
after update on tidemark.pack
for each row when (old.version <> new.version or old.checksum <> new.checksum)
execute function tidemark.audit_change('pack');
comment on trigger pack_change_audit on tidemark.pack is
    'Every other version of a pack is in tidemark.audit. To install the same again is no change.';
