create or replace trigger forbidden_key_audit
after insert or update or delete on tidemark.forbidden_key
for each row execute function tidemark.audit_change('key');
comment on trigger forbidden_key_audit on tidemark.forbidden_key is 'Every change goes to tidemark.audit.';
