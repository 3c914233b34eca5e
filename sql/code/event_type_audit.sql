create or replace trigger event_type_audit
after insert or update or delete on tidemark.event_type
for each row execute function tidemark.audit_change('type');
comment on trigger event_type_audit on tidemark.event_type is 'Every change goes to tidemark.audit.';
