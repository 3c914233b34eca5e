create or replace trigger heartbeat_kind_audit
after insert or update or delete on tidemark.heartbeat_kind
for each row execute function tidemark.audit_change('kind');
comment on trigger heartbeat_kind_audit on tidemark.heartbeat_kind is 'Every change goes to tidemark.audit.';
