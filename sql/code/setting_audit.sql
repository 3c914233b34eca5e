create or replace trigger setting_audit
after insert or update or delete on tidemark.setting
for each row execute function tidemark.audit_change('key');
comment on trigger setting_audit on tidemark.setting is 'Every change goes to tidemark.audit.';
